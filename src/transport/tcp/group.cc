#include "transport/tcp/group.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "transport/open_files.h"

namespace trireme {
namespace {
using Stage = TcpTransfer::Stage;
constexpr auto kBeat = std::chrono::seconds(1);
}  // namespace

void TcpTransfer::Wait() { group->Wait(*this); }
void TcpTransfer::Finish() noexcept { group->Finish(*this); }

TcpGroup::TcpGroup(asio::io_context& io, int rank, int size, double timeout_s, RateLimiter& in,
                   RateLimiter& out, Observer observer)
    : io_(io),
      rank_(rank),
      timeout_s_(timeout_s),
      in_(in),
      out_(out),
      observer_(std::move(observer)),
      beat_(io),
      sweep_(io),
      poller_(io),
      finished_fd_(eventfd(0, EFD_CLOEXEC)) {
  if (finished_fd_ < 0) throw Error("eventfd: {}", ErrnoWords(errno));
  last_beat_ = After(0);
  for (int peer = 0; peer < size; ++peer) members_.emplace_back(rank, size, peer);
  Beat();
}

TcpGroup::~TcpGroup() { close(finished_fd_); }

void TcpGroup::Attach(int peer, Socket socket) {
  std::lock_guard lock(mutex_);
  Member& member = members_[peer];
  TRIREME_ASSERT(peer != rank_ && !member.pair);
  member.pair = std::make_unique<Pair>(static_cast<PairOwner&>(*this), mutex_, member.traffic, peer,
                                       std::move(socket), poller_, in_, out_);
  member.pair->Start();
}

void TcpGroup::Beat() {
  beat_.expires_after(kBeat);
  beat_.async_wait([this](std::error_code error) {
    if (error) return;
    std::unique_lock lock(mutex_);
    const bool slept = Slept();
    last_beat_ = After(0);
    for (Member& member : members_) {
      if (member.pair && slept) member.pair->Forgive();
      if (member.pair) member.pair->Beat(lock);
    }
    lock.unlock();
    Beat();
  });
}

// Connections that a waiting thread has read and left are the loop's again within a millisecond:
// sooner, and both threads would wake up for every message of a quick exchange.
void TcpGroup::OnUnwatched() {
  const bool asleep = sweeps_left_ == 0;
  sweeps_left_ = 20;
  if (asleep) asio::post(io_, [this] { Sweep(); });
}

void TcpGroup::Sweep() {
  sweep_.expires_after(std::chrono::milliseconds(1));
  sweep_.async_wait([this](std::error_code error) {
    if (error) return;
    std::unique_lock lock(mutex_);
    for (Member& member : members_) {
      if (member.pair) member.pair->Watch();
    }
    if (--sweeps_left_ == 0) return;
    lock.unlock();
    Sweep();
  });
}

// This process was stopped, or had no processor.
bool TcpGroup::Slept() const { return After(0) - last_beat_ > 2 * kBeat; }

Ticket TcpGroup::Send(int to, Tag tag, std::span<const std::byte> bytes) {
  return Post(true, to, tag, const_cast<std::byte*>(bytes.data()), bytes.size());
}

Ticket TcpGroup::Receive(int from, Tag tag, std::span<std::byte> bytes) {
  return Post(false, from, tag, bytes.data(), bytes.size());
}

Ticket TcpGroup::Post(bool sends, int peer, Tag tag, std::byte* data, size_t size) {
  TRIREME_ASSERT(peer >= 0 && peer < this->size() && tag >= 0 && tag < kMaxTag);
  std::unique_lock lock(mutex_);
  if (lost_) throw PeerLost(Lost());
  Member& member = members_[peer];
  TcpTransfer& transfer = NewTransfer();
  transfer.sends = sends;
  transfer.peer = peer;
  transfer.tag = tag;
  transfer.data = data;
  transfer.size = size;
  member.traffic.Post(transfer);
  if (member.pair && member.pair->over() && transfer.stage == Stage::kWaiting) {
    OnLoss(peer, "it has left");
  }
  Push(lock, member);
  return Ticket(&transfer);
}

void TcpGroup::Push(std::unique_lock<std::mutex>& lock, Member& member) {
  if (member.pair) {
    member.pair->Flush(lock, true);
  } else {
    Pump(member.traffic, member.traffic);
  }
}

TcpTransfer& TcpGroup::NewTransfer() {
  if (free_.empty()) {
    transfers_.emplace_back().group = this;
    if (free_.capacity() < transfers_.size()) free_.reserve(2 * transfers_.size());
    return transfers_.back();
  }
  TcpTransfer& transfer = *free_.back();
  free_.pop_back();
  return transfer;
}

Deadline TcpGroup::Patience(const TcpTransfer& transfer) const {
  return std::max(transfer.posted, *transfer.progress) +
         std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(timeout_s_));
}

// Until the transfer is over, or the group.
void TcpGroup::Await(std::unique_lock<std::mutex>& lock, TcpTransfer& t) {
  while (t.stage == Stage::kWaiting && !lost_) {
    const Deadline patience = Patience(t);
    if (std::chrono::steady_clock::now() < patience) {
      Pair* const pair = members_[t.peer].pair.get();
      if (pair && t.sends) pair->Watch();
      if (!pair || t.sends || !pair->ReadFor(lock, t, patience)) {
        t.changed.wait_until(lock, patience);
      }
      continue;
    }
    // A member that is silent for so long is lost, and the group with it.
    OnLoss(t.peer, fmt::format("rank {} {} it for {:g} s (transport.timeout_s)", rank_,
                               t.sends ? "has been unable to send to" : "has heard nothing from",
                               timeout_s_));
  }
}

void TcpGroup::Wait(TcpTransfer& transfer) {
  std::unique_lock lock(mutex_);
  Await(lock, transfer);
  if (transfer.stage == Stage::kDone) return;
  if (transfer.stage == Stage::kFailed) throw Error(transfer.error);
  throw PeerLost(Lost());
}

void TcpGroup::Finish(TcpTransfer& transfer) noexcept {
  std::unique_lock lock(mutex_);
  Await(lock, transfer);
  transfer.wanted_back = true;
  transfer.changed.wait(lock, [&] { return !transfer.busy; });
  members_[transfer.peer].traffic.Cancel(transfer);
  free_.push_back(&transfer);
}

void TcpGroup::Abort(std::string_view reason) noexcept {
  std::lock_guard lock(mutex_);
  OnLoss(rank_, reason);
}

void TcpGroup::OnLoss(int rank, std::string_view reason) {
  if (lost_) return;
  lost_ = true;
  lost_rank_ = rank;
  reason_ = reason;
  eventfd_write(finished_fd_, 1);
  for (TcpTransfer& transfer : transfers_) transfer.changed.notify_all();
  for (Member& member : members_) {
    member.traffic.Finish();
    if (!member.pair) continue;
    member.traffic.Abort(rank, reason);
    member.pair->Kick();
  }
  observer_.lost(Lost());
}

std::string TcpGroup::Lost() const { return LostText(rank_, size(), lost_rank_, reason_); }

bool TcpGroup::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

Volume TcpGroup::volume() const {
  std::lock_guard lock(mutex_);
  Volume sum;
  for (const Member& member : members_) {
    sum.sent += member.traffic.volume().sent;
    sum.received += member.traffic.volume().received;
  }
  return sum;
}

double TcpGroup::silent_s(int peer) const {
  std::lock_guard lock(mutex_);
  return members_[peer].pair && !Slept() ? members_[peer].pair->silent_s() : 0;
}

void TcpGroup::Call(int peer) {
  std::unique_lock lock(mutex_);
  members_[peer].traffic.Say(FrameKind::kCall);
  members_[peer].pair->Flush(lock, false);
}

void TcpGroup::OnOver(int peer) {
  over_.notify_all();
  observer_.over(peer);
}

void TcpGroup::SayGoodbye(Deadline until) {
  std::unique_lock lock(mutex_);
  for (Member& member : members_) {
    if (member.pair) member.pair->SayGoodbye(lock);
  }
  over_.wait_until(lock, until, [&] {
    return std::all_of(members_.begin(), members_.end(),
                       [](const Member& m) { return !m.pair || m.pair->over(); });
  });
}

}  // namespace trireme
