#include "transport/tcp/pair.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/assert.h"

namespace trireme {
namespace {

constexpr size_t kTurnBytes = 4 << 20;  // then other connections of the loop get theirs
// Sent where there is nothing to send. Nobody writes them: what is not constant is no part of the
// file.
std::array<std::byte, 64 << 10> zeros{};

bool TryAgain(ssize_t result) {
  return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

// Under the mutex.
void Release(TcpTransfer& transfer) {
  transfer.busy = false;
  if (transfer.wanted_back) transfer.changed.notify_all();
}

int Milliseconds(Deadline until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - ThisMoment()).count();
  return int(std::clamp<int64_t>(left, 0, 60'000));
}

}  // namespace

Pair::Pair(PairOwner& owner, std::mutex& mutex, PairTraffic& traffic, int peer, Socket socket,
           Poller& poller, RateLimiter& in, RateLimiter& out)
    : owner_(owner),
      mutex_(mutex),
      traffic_(traffic),
      peer_(peer),
      loop_(socket.get_executor()),
      fd_(socket.release()),
      poller_(poller),
      in_(in),
      out_(out),
      read_timer_(loop_),
      write_timer_(loop_),
      far_(in.latency_s()),
      heard_(ThisMoment()),
      spoke_(heard_) {
  poller_.Add(fd_, *this);
}

Pair::~Pair() { close(fd_); }

void Pair::Start() {
  want_in_ = true;
  Arm();
}

void Pair::Arm() { poller_.Arm(fd_, *this, want_in_, want_out_); }

void Pair::OnReady(bool in, bool out) {
  std::unique_lock lock(mutex_);
  const bool read = in && want_in_, write = out && want_out_;
  if (read) want_in_ = false;
  if (write) want_out_ = false;
  if (read && far_.on()) {
    Swallow(lock);
  } else if (read) {
    Read(lock);
  }
  if (write) Write(lock, true);
  if (want_in_ || want_out_) Arm();
}

double Pair::silent_s() const {
  return over_ ? 0 : std::chrono::duration<double>(ThisMoment() - heard_).count();
}

void Pair::Forgive() { heard_ = ThisMoment(); }

// What a slowed pair may not do yet.
void Pair::Later(asio::steady_timer& timer, Deadline when, void (Pair::*what)()) {
  asio::post(loop_, [this, &timer, when, what] {
    if (when <= ThisMoment()) return (this->*what)();
    timer.expires_at(when);
    timer.async_wait([this, what](std::error_code error) {
      if (!error) (this->*what)();
    });
  });
}

// ---- reading

void Pair::Read(std::unique_lock<std::mutex>& lock) {
  reading_ = true;
  turn_bytes_ = 0;
  while (turn_bytes_ < kTurnBytes && ReadOnce(lock)) {
    if (read_from_ > ThisMoment()) return Later(read_timer_, read_from_, &Pair::ResumeReading);
  }
  if (over_ || far_.due() == DelayLine::kNever) return LeaveReading();
  want_in_ = !far_.full() && !far_.ended();
  Later(read_timer_, far_.due(), &Pair::ResumeReading);
}

// Of a pair that is far away: what has come is read when its time is there.
void Pair::Swallow(std::unique_lock<std::mutex>& lock) {
  std::array<std::byte, 64 << 10> piece;
  for (size_t bytes = 0; bytes < kTurnBytes && !far_.full();) {
    lock.unlock();
    const ssize_t n = recv(fd_, piece.data(), piece.size(), MSG_DONTWAIT);
    const bool try_again = TryAgain(n);
    lock.lock();
    if (try_again) break;
    if (n <= 0) {
      far_.End();
      break;
    }
    heard_ = ThisMoment();
    far_.Put(std::span(piece).first(size_t(n)));
    bytes += size_t(n);
  }
  want_in_ = !over_ && !far_.full() && !far_.ended();
  if (far_.due() == DelayLine::kNever || std::exchange(reading_, true)) return;
  Later(read_timer_, far_.due(), &Pair::ResumeReading);
}

void Pair::ResumeReading() {
  std::unique_lock lock(mutex_);
  Read(lock);
  if (want_in_) Arm();
}

// The turn is free: whoever waits for what comes next may take it, else the loop goes on.
void Pair::LeaveReading() {
  reading_ = false;
  want_in_ = !over_;
  if (TcpTransfer* next = traffic_.receiving()) next->changed.notify_all();
}

bool Pair::ReadFor(std::unique_lock<std::mutex>& lock, const TcpTransfer& transfer,
                   Deadline deadline) {
  if (reading_ || over_ || in_.slow()) return false;
  reading_ = true;
  if (std::exchange(want_in_, false)) Arm();
  while (transfer.stage == TcpTransfer::Stage::kWaiting && !owner_.finished()) {
    if (ReadOnce(lock)) continue;
    if (over_ || ThisMoment() >= deadline) break;
    lock.unlock();
    pollfd either[2] = {{fd_, POLLIN, 0}, {owner_.finished_fd(), POLLIN, 0}};
    poll(either, 2, Milliseconds(deadline));
    lock.lock();
  }
  // Mostly the same thread comes back at once: then the loop's thread was better not woken.
  if (!over_ && !traffic_.someone_waits()) {
    reading_ = false;
    owner_.OnUnwatched();
    return true;
  }
  LeaveReading();
  if (want_in_) Arm();
  return true;
}

void Pair::Watch() {
  if (reading_ || want_in_ || over_) return;
  want_in_ = true;
  Arm();
}

bool Pair::ReadOnce(std::unique_lock<std::mutex>& lock) {
  if (over_) return false;
  const ssize_t n = Receive(lock);
  if (TryAgain(n)) return false;
  if (n <= 0) {
    End("its connection closed");
    return false;
  }
  heard_ = ThisMoment();
  turn_bytes_ += size_t(n);
  read_from_ = in_.Book(size_t(n));
  try {
    Digest();
  } catch (const BadFrame& error) {
    End(error.what());
  }
  Report();
  Flush(lock, false);  // what was said may want an answer
  return !over_;
}

// As recvmsg.
ssize_t Pair::TakeFar(std::span<const iovec> vectors) {
  size_t taken = 0;
  for (const iovec& v : vectors) {
    const size_t n = far_.Take({static_cast<std::byte*>(v.iov_base), v.iov_len});
    taken += n;
    if (n < v.iov_len) break;
  }
  return taken == 0 && !far_.over() ? -1 : ssize_t(taken);
}

// Straight to where the bytes go, and what comes after them to the staging area.
ssize_t Pair::Receive(std::unique_lock<std::mutex>& lock) {
  TRIREME_ASSERT(begin_ == end_ || !traffic_.inside());
  if (begin_ > 0) {
    std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::span<std::byte> room = traffic_.inside() ? traffic_.room() : std::span<std::byte>();
  const size_t limit = in_.piece();
  iovec vectors[2];
  int count = 0;
  if (room.data()) vectors[count++] = {room.data(), std::min(room.size(), limit)};
  if (!room.data() || room.size() < limit) {
    vectors[count++] = {staging_.data() + end_, std::min(staging_.size() - end_, limit)};
  }
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = size_t(count);
  ssize_t n = 0;
  int error = 0;
  if (far_.on()) {
    n = TakeFar({vectors, size_t(count)});
    error = EAGAIN;
  } else {
    TcpTransfer* const transfer = traffic_.receiving();
    if (transfer) transfer->busy = true;
    lock.unlock();
    n = recvmsg(fd_, &message, MSG_DONTWAIT);
    error = errno;
    lock.lock();
    if (transfer) Release(*transfer);
  }
  if (n > 0) {
    const size_t direct = room.data() ? std::min(size_t(n), room.size()) : 0;
    end_ += size_t(n) - direct;
    if (direct > 0) traffic_.Arrived(direct);
  }
  errno = error;
  return n;
}

// Takes the frames out of the staging area.
void Pair::Digest() {
  while (begin_ < end_ || !traffic_.inside()) {
    const size_t here = end_ - begin_;
    if (traffic_.inside()) {
      const std::span<std::byte> room = traffic_.room();
      const size_t n = std::min(room.size(), here);
      if (room.data()) std::memcpy(room.data(), staging_.data() + begin_, n);
      begin_ += n;
      traffic_.Arrived(n);
      continue;
    }
    if (here < kFrameBytes) return;
    const std::span<const std::byte, kFrameBytes> header(staging_.data() + begin_, kFrameBytes);
    const std::optional<Frame> frame = Decode(header);
    if (!frame) throw BadFrame("it sent an invalid frame");
    begin_ += kFrameBytes;
    traffic_.Take(*frame);
    if (traffic_.goodbye()) return;
  }
}

void Pair::Report() {
  if (const auto loss = traffic_.TakeLoss()) owner_.OnLoss(loss->rank, loss->reason);
  if (traffic_.TakeCall()) owner_.OnCall(peer_);
  if (!traffic_.goodbye() || over_) return;
  parting_ = true;
  End("");
  JudgeEnd();
}

// Of a peer that said goodbye.
void Pair::JudgeEnd() {
  // What is being written right now may be what it ended with.
  if (traffic_.someone_waits() && !transmitting_) owner_.OnLoss(peer_, "it has left");
}

void Pair::End(std::string_view reason) {
  if (over_) return;
  over_ = mute_ = true;
  // The descriptor stays: another thread may be writing.
  shutdown(fd_, SHUT_RDWR);
  if (!parting_) owner_.OnLoss(peer_, reason);
  owner_.OnOver(peer_);
}

// ---- writing

void Pair::Flush(std::unique_lock<std::mutex>& lock, bool long_messages) {
  if (!writing_) Write(lock, long_messages);
}

void Pair::Kick() {
  if (writing_ || mute_) return;
  writing_ = true;
  Later(write_timer_, {}, &Pair::ResumeWriting);
}

void Pair::Beat(std::unique_lock<std::mutex>& lock) {
  if (over_ || writing_ || ThisMoment() - spoke_ < std::chrono::milliseconds(900)) return;
  traffic_.Say(FrameKind::kHeartbeat);
  Flush(lock, false);
}

void Pair::SayGoodbye(std::unique_lock<std::mutex>& lock) {
  if (over_) return;
  parting_ = true;
  traffic_.Say(FrameKind::kGoodbye);
  Flush(lock, false);
}

void Pair::ResumeWriting() {
  std::unique_lock lock(mutex_);
  Write(lock, true);
}

void Pair::Write(std::unique_lock<std::mutex>& lock, bool long_messages) {
  writing_ = true;
  for (size_t turn = 0; !mute_;) {
    PairTraffic::Outgoing* const out = traffic_.Next(long_messages);
    if (!out) {
      if (traffic_.waits_to_write()) return Later(write_timer_, {}, &Pair::ResumeWriting);
      break;
    }
    const ssize_t n = Transmit(lock, *out);
    if (n > 0) traffic_.Written(size_t(n));
    if (traffic_.goodbye()) JudgeEnd();
    if (TryAgain(n)) {
      want_out_ = true;
      return Arm();
    }
    if (n < 0) {
      mute_ = true;  // the reader finds out what became of the peer
      break;
    }
    spoke_ = ThisMoment();
    turn += size_t(n);
    const Deadline next = out_.Book(size_t(n));
    if (next > spoke_ || turn >= kTurnBytes) {
      return Later(write_timer_, next, &Pair::ResumeWriting);
    }
  }
  writing_ = false;
}

ssize_t Pair::Transmit(std::unique_lock<std::mutex>& lock, PairTraffic::Outgoing& out) {
  const size_t limit = out_.piece();
  iovec vectors[2];
  int count = 0;
  if (out.written < kFrameBytes) {
    vectors[count++] = {out.header.data() + out.written, kFrameBytes - out.written};
  }
  const size_t done = out.written - std::min(out.written, kFrameBytes);
  if (done < out.size) {
    const size_t left = std::min(out.size - done, limit);
    vectors[count++] = out.data ? iovec{const_cast<std::byte*>(out.data + done), left}
                                : iovec{zeros.data(), std::min(left, zeros.size())};
  }
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = size_t(count);
  TcpTransfer* const transfer = out.transfer;
  if (transfer) transfer->busy = true;
  transmitting_ = true;
  lock.unlock();
  const ssize_t n = sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  const int error = errno;
  lock.lock();
  transmitting_ = false;
  if (transfer) Release(*transfer);
  errno = error;
  return n;
}

}  // namespace trireme
