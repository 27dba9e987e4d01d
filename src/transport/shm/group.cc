#include "transport/shm/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {
namespace {

constexpr double kLook_s = 0.05;  // how often a sleeper looks whether the group still lives
constexpr int kSlotsOfATag = ShmSegment::kSlots / 4;  // so that one tag does not block the others
constexpr size_t kLongCopy = 256 << 10;               // others may work meanwhile

}  // namespace

ShmGroup::ShmGroup(ShmSegment& segment, int rank, double timeout_s)
    : segment_(segment),
      rank_(rank),
      timeout_s_(timeout_s),
      spins_(SpinsFor(segment.ranks())),
      meeting_(segment.meeting(), {.rank = rank,
                                   .size = segment.ranks(),
                                   .base = segment.base(),
                                   .bytes = segment.size(),
                                   .timeout_s = timeout_s,
                                   .check = [this](int silent) { Check(silent); }}) {}

Ticket ShmGroup::Send(int to, Tag tag, std::span<const std::byte> bytes) {
  return Post(true, to, tag, const_cast<std::byte*>(bytes.data()), bytes.size());
}

Ticket ShmGroup::Receive(int from, Tag tag, std::span<std::byte> bytes) {
  return Post(false, from, tag, bytes.data(), bytes.size());
}

Volume ShmGroup::volume() const {
  std::lock_guard lock(mutex_);
  return {volume_.sent + summed_.sent, volume_.received + summed_.received};
}

Ticket ShmGroup::Post(bool sends, int peer, Tag tag, std::byte* data, size_t size) {
  TRIREME_ASSERT(peer >= 0 && peer < segment_.ranks());
  std::unique_lock lock(mutex_);
  if (segment_.aborted()) ThrowLost();
  Node& node = NewNode();
  node.sends = sends;
  node.peer = peer;
  node.tag = tag;
  node.data = data;
  node.size = size;
  node.moved = 0;
  node.slot = -1;
  node.copying = false;
  node.deadline = After(timeout_s_);
  node.stage = Stage::kQueued;
  node.number = (sends ? sent_ : received_)[{peer, tag}]++;
  open_.push_back(&node);
  Progress(lock);
  return Ticket(&node);
}

void ShmGroup::Wait(Node& node) {
  for (;;) {
    const uint32_t count = segment_.event(rank_).Count();
    {
      std::unique_lock lock(mutex_);
      Progress(lock);
      if (node.stage == Stage::kDone) return;
      if (node.stage == Stage::kFailed) throw Error(node.error);
      if (!node.copying && segment_.aborted()) ThrowLost();
    }
    if (std::chrono::steady_clock::now() >= node.deadline && !node.copying) Check(node.peer);
    segment_.event(rank_).Wait(count, std::min(node.deadline, After(kLook_s)), spins_);
  }
}

bool ShmGroup::Settled(const Node& node) const {
  return node.stage == Stage::kDone || node.stage == Stage::kFailed;
}

void ShmGroup::Finish(Node& node) noexcept {
  for (;;) {
    const uint32_t count = segment_.event(rank_).Count();
    {
      std::unique_lock lock(mutex_);
      if (!segment_.aborted()) Progress(lock);
      const bool over = segment_.aborted() || std::chrono::steady_clock::now() >= node.deadline;
      if (Settled(node) || (over && !node.copying)) {
        if (!Settled(node)) std::erase(open_, &node);
        free_.push_back(&node);
        return;
      }
    }
    segment_.event(rank_).Wait(count, After(kLook_s), spins_);
  }
}

// Moves what can be moved, until nothing more can.
void ShmGroup::Progress(std::unique_lock<std::mutex>& lock) {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < open_.size(); ++i) {
      Node& node = *open_[i];
      if (!node.copying) moved |= Advance(lock, node);
    }
    const auto settled = [&](const Node* node) { return Settled(*node); };
    if (std::erase_if(open_, settled) > 0) segment_.event(rank_).Notify();  // own other threads
  }
}

bool ShmGroup::Advance(std::unique_lock<std::mutex>& lock, Node& node) {
  if (Settled(node)) return false;
  if (node.sends) return node.stage == Stage::kQueued ? Place(node) : MoveSend(node);
  return node.stage == Stage::kQueued ? Match(node) : MoveReceive(lock, node);
}

ShmSlot& ShmGroup::SlotOf(const Node& node) const {
  return node.sends ? segment_.slot(rank_, node.peer, node.slot)
                    : segment_.slot(node.peer, rank_, node.slot);
}

std::byte* ShmGroup::StagingOf(const Node& node) const {
  return node.sends ? segment_.staging(rank_, node.peer, node.slot)
                    : segment_.staging(node.peer, rank_, node.slot);
}

// A send takes a slot, after those before it of the same tag.
bool ShmGroup::Place(Node& node) {
  for (const Node* other : open_) {
    if (other == &node) break;
    if (other->sends && other->peer == node.peer && other->tag == node.tag &&
        other->stage == Stage::kQueued) {
      return false;
    }
  }
  int free = -1, of_tag = 0;
  for (int i = 0; i < ShmSegment::kSlots; ++i) {
    ShmSlot& slot = segment_.slot(rank_, node.peer, i);
    if (slot.state.load(std::memory_order_acquire) == ShmSlot::kFree) {
      if (free < 0) free = i;
    } else if (slot.tag == node.tag) {
      ++of_tag;
    }
  }
  if (free < 0 || of_tag >= kSlotsOfATag) return false;
  node.slot = free;
  node.stage = Stage::kMoving;
  ShmSlot& slot = SlotOf(node);
  slot.tag = node.tag;
  slot.number = node.number;
  slot.length = node.size;
  const bool in_place = node.size > ShmSlot::kStaging / 2 && segment_.Holds(node.data, node.size);
  slot.place = in_place ? uint64_t(node.data - segment_.base()) : ShmSlot::kStaged;
  slot.head.store(0, std::memory_order_relaxed);
  slot.tail.store(0, std::memory_order_relaxed);
  if (!in_place) MoveSend(node);
  slot.state.store(ShmSlot::kPosted, std::memory_order_release);
  segment_.event(node.peer).Notify();
  return true;
}

bool ShmGroup::MoveSend(Node& node) {
  ShmSlot& slot = SlotOf(node);
  const uint32_t state = slot.state.load(std::memory_order_acquire);
  if (state == ShmSlot::kRefused) {
    node.error = fmt::format("rank {} expects {} bytes from rank {}, which sends {} (tag {})",
                             node.peer, slot.wanted, rank_, node.size, node.tag);
    slot.state.store(ShmSlot::kFree, std::memory_order_release);
    node.stage = Stage::kFailed;
    return true;
  }
  if (slot.place != ShmSlot::kStaged) {
    if (state != ShmSlot::kTaken) return false;
    slot.state.store(ShmSlot::kFree, std::memory_order_release);
    volume_.sent += node.size;
    node.stage = Stage::kDone;
    return true;
  }
  bool moved = false;
  while (node.moved < node.size) {
    const size_t used = node.moved - slot.tail.load(std::memory_order_acquire);
    const size_t at = node.moved % ShmSlot::kStaging;
    const size_t n =
        std::min({node.size - node.moved, ShmSlot::kStaging - used, ShmSlot::kStaging - at});
    if (n == 0 || used > ShmSlot::kStaging) return moved;
    std::memcpy(StagingOf(node) + at, node.data + node.moved, n);
    node.moved += n;
    slot.head.store(node.moved, std::memory_order_release);
    segment_.event(node.peer).Notify();
    moved = true;
  }
  volume_.sent += node.size;
  node.stage = Stage::kDone;  // the receiver frees the slot
  return true;
}

// Numbers, not looks, keep the order: while one goes over the slots, more are filled in any of
// them.
bool ShmGroup::Match(Node& node) {
  int found = -1;
  for (int i = 0; i < ShmSegment::kSlots && found < 0; ++i) {
    const ShmSlot& slot = segment_.slot(node.peer, rank_, i);
    const bool posted = slot.state.load(std::memory_order_acquire) == ShmSlot::kPosted;
    if (posted && slot.tag == node.tag && slot.number == node.number) found = i;
  }
  if (found < 0) return false;
  node.slot = found;
  ShmSlot& slot = SlotOf(node);
  if (slot.length != node.size) {
    node.error = fmt::format("rank {} expects {} bytes from rank {}, which sends {} (tag {})",
                             rank_, node.size, node.peer, slot.length, node.tag);
    slot.wanted = node.size;
    slot.state.store(ShmSlot::kRefused, std::memory_order_release);
    segment_.event(node.peer).Notify();
    node.stage = Stage::kFailed;
    return true;
  }
  if (slot.place != ShmSlot::kStaged &&
      (slot.place > segment_.size() || slot.length > segment_.size() - slot.place)) {
    node.error = fmt::format("rank {}: a message from rank {} in shared memory is damaged", rank_,
                             node.peer);
    node.stage = Stage::kFailed;
    return true;
  }
  node.stage = Stage::kMoving;
  return true;
}

bool ShmGroup::MoveReceive(std::unique_lock<std::mutex>& lock, Node& node) {
  ShmSlot& slot = SlotOf(node);
  if (slot.place != ShmSlot::kStaged) {
    const std::byte* from = segment_.base() + slot.place;
    if (node.size > kLongCopy) {
      node.copying = true;
      lock.unlock();
      std::memcpy(node.data, from, node.size);
      lock.lock();
      node.copying = false;
    } else {
      std::memcpy(node.data, from, node.size);
    }
    slot.state.store(ShmSlot::kTaken, std::memory_order_release);
    segment_.event(node.peer).Notify();
    volume_.received += node.size;
    node.stage = Stage::kDone;
    return true;
  }
  bool moved = false;
  while (node.moved < node.size) {
    const uint64_t head = slot.head.load(std::memory_order_acquire);
    const size_t at = node.moved % ShmSlot::kStaging;
    if (head > node.size || head < node.moved) {
      node.error = fmt::format("rank {}: a message from rank {} in shared memory is damaged", rank_,
                               node.peer);
      node.stage = Stage::kFailed;
      return true;
    }
    const size_t n = std::min(size_t(head) - node.moved, ShmSlot::kStaging - at);
    if (n == 0) return moved;
    std::memcpy(node.data + node.moved, StagingOf(node) + at, n);
    node.moved += n;
    slot.tail.store(node.moved, std::memory_order_release);
    segment_.event(node.peer).Notify();
    moved = true;
  }
  slot.state.store(ShmSlot::kFree, std::memory_order_release);
  segment_.event(node.peer).Notify();
  volume_.received += node.size;
  node.stage = Stage::kDone;
  return true;
}

void ShmGroup::Check(int silent) {
  if (segment_.aborted()) ThrowLost();
  if (silent == SharedSum::kNobody) return;
  segment_.Abort(silent,
                 fmt::format("rank {} has heard nothing from it for {:g} s (transport.timeout_s)",
                             rank_, timeout_s_));
  ThrowLost();
}

void ShmGroup::ThrowLost() const {
  throw PeerLost(LostText(rank_, size(), segment_.lost_rank(), segment_.reason()));
}

ShmGroup::Node& ShmGroup::NewNode() {
  if (free_.empty()) {
    nodes_.emplace_back().group = this;
    if (free_.capacity() < nodes_.size()) free_.reserve(2 * nodes_.size());  // for giving back
    return nodes_.back();
  }
  Node& node = *free_.back();
  free_.pop_back();
  return node;
}

std::span<float> ShmGroup::Allocate(size_t floats) {
  const size_t bytes = (floats * sizeof(float) + 63) / 64 * 64;
  if (bytes > segment_.arena_size() - allocated_) {
    throw Error("rank {}: {} bytes of shared memory are not enough", rank_, segment_.arena_size());
  }
  auto* data = reinterpret_cast<float*>(segment_.arena(rank_) + allocated_);
  allocated_ += bytes;
  return {data, floats};
}

bool ShmGroup::SumInOrder(std::span<const std::span<float>> parts, std::span<float> into) {
  const bool finite = meeting_.SumInOrder(parts, into);
  std::lock_guard lock(mutex_);
  summed_ = meeting_.volume();
  return finite;
}

}  // namespace trireme
