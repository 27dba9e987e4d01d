#include "transport/threads/hub.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/assert.h"

namespace trireme {

void Hub::FreeAligned::operator()(std::byte* memory) const { std::free(memory); }

Hub::Memory Hub::Zeroed(size_t bytes) {
  const size_t rounded = (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
  if (!memory) throw std::bad_alloc();
  std::memset(memory, 0, rounded);
  return Memory(memory);
}

Hub::Hub(int size, double timeout_s)
    : timeout_s_(timeout_s), meeting_(Zeroed(SumPlace::Bytes(size))), ranks_(size) {
  constexpr size_t kAtATime = 64;  // transfers of a rank; more are possible
  for (Rank& rank : ranks_) {
    rank.sends.reserve(kAtATime);
    rank.receives.reserve(kAtATime);
  }
  free_.reserve(kAtATime * ranks_.size());
  for (size_t i = 0; i < kAtATime; ++i) {
    nodes_.emplace_back().hub = this;
    free_.push_back(&nodes_.back());
  }
}

Ticket Hub::Send(int from, int to, Tag tag, std::span<const std::byte> bytes) {
  return Post(true, from, to, tag, const_cast<std::byte*>(bytes.data()), bytes.size());
}

Ticket Hub::Receive(int from, int to, Tag tag, std::span<std::byte> bytes) {
  return Post(false, from, to, tag, bytes.data(), bytes.size());
}

Ticket Hub::Post(bool sends, int from, int to, Tag tag, std::byte* data, size_t size) {
  TRIREME_ASSERT(from >= 0 && from < this->size() && to >= 0 && to < this->size());
  std::unique_lock lock(mutex_);
  if (aborted_) throw PeerLost(Lost(sends ? from : to));
  Node& node = NewNode();
  node.sends = sends;
  node.from = from;
  node.to = to;
  node.tag = tag;
  node.data = data;
  node.size = size;
  node.deadline = After(timeout_s_);
  node.stage = Stage::kWaiting;

  std::vector<Node*>& others = sends ? ranks_[to].receives : ranks_[to].sends;
  const auto match = std::find_if(others.begin(), others.end(),
                                  [&](const Node* n) { return n->from == from && n->tag == tag; });
  if (match == others.end()) {
    (sends ? ranks_[to].sends : ranks_[to].receives).push_back(&node);
  } else {
    Node& other = **match;
    others.erase(match);
    Meet(lock, node, other);
  }
  return Ticket(&node);
}

void Hub::Meet(std::unique_lock<std::mutex>& lock, Node& mine, Node& other) {
  Node& send = mine.sends ? mine : other;
  Node& receive = mine.sends ? other : mine;
  if (send.size != receive.size) {
    const std::string error =
        fmt::format("rank {} of {} expects {} bytes from rank {}, which sends {} (tag {})",
                    receive.to, size(), receive.size, send.from, send.size, send.tag);
    mine.stage = other.stage = Stage::kFailed;
    mine.error = other.error = error;
  } else {
    mine.stage = other.stage = Stage::kCopying;
    lock.unlock();
    if (send.size > 0) std::memcpy(receive.data, send.data, send.size);
    lock.lock();
    mine.stage = other.stage = Stage::kDone;
    ranks_[send.from].volume.sent += send.size;
    ranks_[send.to].volume.received += send.size;
  }
  ranks_[other.owner()].changed.notify_all();
}

void Hub::Wait(Node& node) {
  std::unique_lock lock(mutex_);
  ranks_[node.owner()].changed.wait_until(lock, node.deadline, [&] {
    return node.stage == Stage::kDone || node.stage == Stage::kFailed ||
           (node.stage == Stage::kWaiting && aborted_);
  });
  if (node.stage == Stage::kDone) return;
  if (node.stage == Stage::kFailed) throw Error(node.error);
  if (!aborted_) {  // a member that is silent for so long is lost, and the group with it
    Lose(node.peer(),
         fmt::format("rank {} {} it for {:g} s (transport.timeout_s)", node.owner(),
                     node.sends ? "has been unable to send to" : "has heard nothing from",
                     timeout_s_));
  }
  throw PeerLost(Lost(node.owner()));
}

void Hub::Check(int rank, int silent) {
  std::lock_guard lock(mutex_);
  if (!aborted_) {
    if (silent == SharedSum::kNobody) return;
    Lose(silent, fmt::format("rank {} has heard nothing from it for {:g} s (transport.timeout_s)",
                             rank, timeout_s_));
  }
  throw PeerLost(Lost(rank));
}

std::span<float> Hub::Allocate(size_t floats) {
  Memory memory = Zeroed(floats * sizeof(float));
  auto* data = reinterpret_cast<float*>(memory.get());
  std::lock_guard lock(mutex_);
  allocated_.push_back(std::move(memory));
  return {data, floats};
}

void Hub::Finish(Node& node) noexcept {
  std::unique_lock lock(mutex_);
  const auto settled = [&] {
    return node.stage == Stage::kDone || node.stage == Stage::kFailed ||
           (node.stage == Stage::kWaiting && aborted_);
  };
  std::condition_variable& changed = ranks_[node.owner()].changed;
  if (!changed.wait_until(lock, node.deadline, settled)) {
    // Only the end of a copy that has begun is still worth waiting for.
    changed.wait(lock, [&] { return node.stage != Stage::kCopying; });
  }
  if (node.stage == Stage::kWaiting) Unlink(node);
  free_.push_back(&node);
}

void Hub::Abort(int rank, std::string_view reason) noexcept {
  std::lock_guard lock(mutex_);
  if (!aborted_) Lose(rank, reason);
}

void Hub::Lose(int rank, std::string_view reason) {
  aborted_ = true;
  lost_ = rank;
  reason_ = reason;
  for (Rank& r : ranks_) r.changed.notify_all();
  meeting().event().Notify();
}

Volume Hub::volume(int rank) const {
  std::lock_guard lock(mutex_);
  return ranks_[rank].volume;
}

Hub::Node& Hub::NewNode() {
  if (free_.empty()) {
    nodes_.emplace_back().hub = this;
    if (free_.capacity() < nodes_.size()) free_.reserve(2 * nodes_.size());  // for giving back
    return nodes_.back();
  }
  Node& node = *free_.back();
  free_.pop_back();
  return node;
}

void Hub::Unlink(Node& node) {
  std::vector<Node*>& list = node.sends ? ranks_[node.to].sends : ranks_[node.to].receives;
  list.erase(std::find(list.begin(), list.end(), &node));
}

std::string Hub::Lost(int rank) const { return LostText(rank, size(), lost_, reason_); }

Volume ThreadGroup::volume() const {
  const Volume sent = hub_.volume(rank_);
  std::lock_guard lock(mutex_);
  return {sent.sent + summed_.sent, sent.received + summed_.received};
}

bool ThreadGroup::SumInOrder(std::span<const std::span<float>> parts, std::span<float> into) {
  const bool finite = meeting_.SumInOrder(parts, into);
  std::lock_guard lock(mutex_);
  summed_ = meeting_.volume();
  return finite;
}

}  // namespace trireme
