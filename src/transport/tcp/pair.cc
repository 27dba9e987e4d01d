#include "transport/tcp/pair.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "base/assert.h"

namespace trireme {
namespace {

constexpr size_t kTurnBytes = 4 << 20;  // then other connections of the loop get theirs
constexpr std::array<std::byte, 64 << 10> kZeros{};
const Deadline kAtOnce{};

Deadline Clock() { return std::chrono::steady_clock::now(); }
bool Later(ssize_t result) {
  return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

// Under the mutex.
void Release(TcpTransfer& transfer) {
  transfer.busy = false;
  if (transfer.wanted_back) transfer.changed.notify_all();
}

}  // namespace

Pair::Pair(PairOwner& owner, std::mutex& mutex, Traffic& traffic, int peer, Socket socket, Pace& in,
           Pace& out)
    : owner_(owner),
      mutex_(mutex),
      traffic_(traffic),
      peer_(peer),
      socket_(std::move(socket)),
      fd_(socket_.native_handle()),
      in_(in),
      out_(out),
      read_timer_(socket_.get_executor()),
      write_timer_(socket_.get_executor()),
      heard_(Clock()),
      spoke_(heard_) {
  socket_.non_blocking(true);
}

void Pair::Start() { WaitReadable(); }

double Pair::silent_s() const {
  return over_ ? 0 : std::chrono::duration<double>(Clock() - heard_).count();
}

// ---- reading

void Pair::WaitReadable() {
  socket_.async_wait(Socket::wait_read, [this](std::error_code error) {
    if (!error) OnReadable();
  });
}

void Pair::OnReadable() {
  std::unique_lock lock(mutex_);
  Deadline next = kAtOnce;
  for (size_t turn = 0; turn < kTurnBytes && !over_;) {
    const ssize_t n = Receive(lock);
    if (Later(n)) break;
    if (n <= 0) {
      End("its connection closed");
      break;
    }
    heard_ = Clock();
    try {
      Digest();
    } catch (const BadFrame& error) {
      End(error.what());
    }
    Report();
    Flush(lock);  // what was said may want an answer
    turn += size_t(n);
    next = in_.Book(size_t(n));
    if (next > Clock()) break;
  }
  if (over_) return;
  lock.unlock();
  if (next <= Clock()) return WaitReadable();
  read_timer_.expires_at(next);
  read_timer_.async_wait([this](std::error_code error) {
    if (!error) OnReadable();
  });
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
  TcpTransfer* const transfer = traffic_.receiving();
  if (transfer) transfer->busy = true;
  lock.unlock();
  const ssize_t n = recvmsg(fd_, &message, MSG_DONTWAIT);
  const int error = errno;
  lock.lock();
  if (transfer) Release(*transfer);
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
    if (!frame) throw BadFrame("it sent what is not a frame");
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
  if (traffic_.someone_waits() && !transmitting_) owner_.OnLoss(peer_, "it has ended");
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

void Pair::Flush(std::unique_lock<std::mutex>& lock) {
  if (!writing_) Write(lock, false);
}

void Pair::Kick() {
  if (writing_ || mute_) return;
  writing_ = true;
  Resume(kAtOnce);
}

void Pair::Beat(std::unique_lock<std::mutex>& lock) {
  if (over_ || writing_ || Clock() - spoke_ < std::chrono::milliseconds(900)) return;
  traffic_.Say(FrameKind::kHeartbeat);
  Flush(lock);
}

void Pair::SayGoodbye(std::unique_lock<std::mutex>& lock) {
  if (over_) return;
  parting_ = true;
  traffic_.Say(FrameKind::kGoodbye);
  Flush(lock);
}

void Pair::Write(std::unique_lock<std::mutex>& lock, bool long_messages) {
  writing_ = true;
  for (size_t turn = 0; !mute_;) {
    Traffic::Outgoing* const out = traffic_.Next(long_messages);
    if (!out) {
      if (traffic_.waits_to_write()) return Resume(kAtOnce);
      break;
    }
    const ssize_t n = Transmit(lock, *out);
    if (n > 0) traffic_.Written(size_t(n));
    if (traffic_.goodbye()) JudgeEnd();
    if (Later(n)) {
      asio::post(socket_.get_executor(), [this] { WaitWritable(); });
      return;
    }
    if (n < 0) {
      mute_ = true;  // the reader finds out what became of the peer
      break;
    }
    spoke_ = Clock();
    turn += size_t(n);
    const Deadline next = out_.Book(size_t(n));
    if (next > Clock() || turn >= kTurnBytes) return Resume(next);
  }
  writing_ = false;
}

ssize_t Pair::Transmit(std::unique_lock<std::mutex>& lock, Traffic::Outgoing& out) {
  const size_t limit = out_.piece();
  iovec vectors[2];
  int count = 0;
  if (out.written < kFrameBytes) {
    vectors[count++] = {out.header.data() + out.written, kFrameBytes - out.written};
  }
  const size_t done = out.written - std::min(out.written, kFrameBytes);
  if (done < out.size) {
    const size_t left = std::min(out.size - done, limit);
    vectors[count++] =
        out.data ? iovec{const_cast<std::byte*>(out.data + done), left}
                 : iovec{const_cast<std::byte*>(kZeros.data()), std::min(left, kZeros.size())};
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

void Pair::WaitWritable() {
  socket_.async_wait(Socket::wait_write, [this](std::error_code error) {
    std::unique_lock lock(mutex_);
    if (error) {
      mute_ = true;
      writing_ = false;
      return;
    }
    Write(lock, true);
  });
}

void Pair::Resume(Deadline when) {
  asio::post(socket_.get_executor(), [this, when] {
    const auto go_on = [this](std::error_code error) {
      if (error) return;
      std::unique_lock lock(mutex_);
      Write(lock, true);
    };
    if (when <= Clock()) return go_on({});
    write_timer_.expires_at(when);
    write_timer_.async_wait(go_on);
  });
}

}  // namespace trireme
