#include "strategy/inner/broker.h"

#include <algorithm>

#include "base/assert.h"
#include "base/denormals.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "flat/arithmetic.h"

namespace trireme {

Broker::Broker(int workers, double timeout_s) : timeout_s_(timeout_s), shares_(workers) {
  aggregator_ =
      StartThread("the broker's thread", [this](const std::stop_token& stop) { Aggregate(stop); });
}

Broker::~Broker() = default;

// Workers have devices of their own, all of them the processor.
Slice Broker::Own(Slice slice) {
  TRIREME_ASSERT(slice.device->host_visible());
  slice.device = &device_;
  return slice;
}

void Broker::Meet(int worker, const Share& share) {
  std::unique_lock lock(mutex_);
  const int64_t round = round_;
  shares_[worker] = share;
  ++arrived_;
  changed_.notify_all();
  AwaitRound(lock, worker, round);
  if (worker > 0) {
    const Slice parent = Own(shares_[0].state), scale = Own(shares_[0].scale);
    lock.unlock();
    const auto queue = device_.NewQueue();
    flat::Copy(*queue, parent, Own(share.state));
    flat::Copy(*queue, scale, Own(share.scale));
    lock.lock();
    ++taken_;
    changed_.notify_all();
  } else {  // the parent stays until all have it, which nothing can keep them from
    changed_.wait(lock, [&] { return taken_ + 1 == shares_.size(); });
    taken_ = 0;
  }
}

void Broker::AwaitRound(std::unique_lock<std::mutex>& lock, int worker, int64_t round) {
  const bool in_time = changed_.wait_until(lock, After(timeout_s_),
                                           [&] { return error_ || round_ > round || left_ >= 0; });
  if (error_) std::rethrow_exception(error_);
  if (round_ > round) return;
  if (!in_time) {
    throw PeerLost(
        "worker {}: the others did not reach the barrier within {:g} s (transport.timeout_s)",
        worker, timeout_s_);
  }
  throw PeerLost("worker {}: worker {} left in the middle of a step", worker, left_);
}

void Broker::Leave(int worker) noexcept {
  std::lock_guard lock(mutex_);
  left_ = worker;
  changed_.notify_all();
}

void Broker::Aggregate(std::stop_token stop) {
  const DenormalsOff denormals_off;
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return arrived_ == shares_.size(); })) {
    try {
      SumInOrder();
    } catch (const std::exception&) {
      error_ = std::current_exception();
    }
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
}

// All workers wait, so everything is this thread's.
void Broker::SumInOrder() {
  const auto queue = device_.NewQueue();
  in_order_.clear();
  for (const Share& share : shares_) in_order_.push_back(&share);
  std::ranges::sort(in_order_, {}, &Share::first_shard);
  parts_.clear();
  for (const Share* share : in_order_) {
    for (const Slice& part : share->parts) parts_.push_back(Own(part));
  }
  const Slice sum = Own(shares_[0].into);
  if (parts_.empty()) {
    flat::Fill(*queue, 0, sum);
  } else if (parts_[0].data == sum.data) {
    flat::SumInOrder(*queue, parts_[0], std::span<const Slice>(parts_).subspan(1), sum);
  } else {
    SumInBlocks(*queue, sum);
  }
  shares_[0].update();
  for (size_t w = 1; w < shares_.size(); ++w) {
    const auto [begin, size] = shares_[w].metrics;
    flat::Copy(*queue, sum.Sub(begin, size), Own(shares_[w].into).Sub(begin, size));
  }
}

// The sum takes the place of one of its parts: a block of it is written when all have been read.
void Broker::SumInBlocks(Queue& queue, Slice sum) {
  constexpr size_t kBlock = 4096;  // stays in a processor's first cache
  if (!block_.slice().device) block_ = Buffer(device_, kBlock);
  for (size_t at = 0; at < sum.size; at += kBlock) {
    const size_t size = std::min(kBlock, sum.size - at);
    cut_.clear();
    for (const Slice& part : parts_) cut_.push_back(part.Sub(at, size));
    const Slice block = block_.slice().Sub(0, size);
    flat::SumInOrder(queue, cut_[0], std::span<const Slice>(cut_).subspan(1), block);
    flat::Copy(queue, block, sum.Sub(at, size));
  }
}

}  // namespace trireme
