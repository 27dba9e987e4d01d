#include "strategy/inner/shared.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "flat/arithmetic.h"

namespace trireme {

Slice InnerShared::Place(Role role, size_t floats, Device& device) {
  if (role != Role::kSummand) return {};
  shared_.push_back(memory_.Allocate(floats));
  if (!device.host_visible()) return {};
  return {shared_.back().data(), floats, &device};
}

void InnerShared::Begin(Replica& r) {
  summands_.assign(r.summands.begin(), r.summands.end());
  queue_ = r.device.NewQueue();
  staged_ = !r.device.host_visible();
  parts_.reserve(shared_.size());
  comm_thread_ = std::make_unique<CommThread<Task>>(
      [this](Task& task) { Run(task); }, [this](std::string_view why) { group_.Abort(why); },
      r.observer.spans);
}

void InnerShared::BucketReady(Replica& r, const Bucket& bucket, const Event& event) {
  // More workers than shards: this one adds nothing.
  const size_t parts = std::min(r.work.shards.size(), summands_.size());
  comm_thread_->Push({bucket.range, parts, event});
}

void InnerShared::Reduce(Replica& r) {
  const Stopwatch watch;
  comm_thread_->Drain();
  waited_s_ += watch.seconds();
  sum_is_finite_ = std::exchange(finite_, true);
  r.queue.Wait(queue_->Record());
}

void InnerShared::Run(const Task& task) {
  const auto [begin, size] = task.range;
  if (staged_) {
    queue_->Wait(task.event);
    for (size_t i = 0; i < task.parts; ++i) {
      flat::Get(*queue_, summands_[i].Sub(begin, size), shared_[i].subspan(begin, size));
    }
    queue_->Sync();
  } else {
    task.event.Wait();
  }
  parts_.clear();
  for (size_t i = 0; i < task.parts; ++i) parts_.push_back(shared_[i].subspan(begin, size));
  const std::span<float> sum = shared_[0].subspan(begin, size);
  if (!memory_.SumInOrder(parts_, sum)) finite_ = false;
  if (staged_) flat::Put(*queue_, sum, summands_[0].Sub(begin, size));
}

}  // namespace trireme
