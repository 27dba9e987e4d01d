#include "strategy/inner/shared.h"

#include <algorithm>
#include <utility>

namespace trireme {

Slice InnerShared::Place(Role role, size_t floats, Device& device) {
  if (role != Role::kSummand) return {};
  const std::span<float> memory = memory_.Allocate(floats);
  if (staging_.emplace_back(device, memory).copies()) return {};
  return {memory.data(), floats, &device};
}

void InnerShared::Begin(Replica& r) {
  summands_.assign(r.summands.begin(), r.summands.end());
  queue_ = r.device.NewQueue();
  parts_.reserve(staging_.size());
  comm_thread_ = std::make_unique<CommThread<Task>>(
      [this](Task& task) { return Run(task); }, [this](std::string_view why) { group_.Abort(why); },
      r.observer.spans);
}

void InnerShared::BucketReady(Replica& r, const Bucket& bucket, const Event& event) {
  // More workers than shards: this one adds nothing.
  const size_t parts = std::min(r.work.shards.size(), summands_.size());
  comm_thread_->Push({bucket.range, parts, event});
}

void InnerShared::Reduce(Replica& r) {
  const Event began = r.queue.Mark();  // backward is over
  comm_thread_->Drain();
  sum_is_finite_ = std::exchange(finite_, true);
  r.queue.Wait(queue_->Record());
  waited_.Add(began, r.queue.Mark());
}

CommWork InnerShared::Run(const Task& task) {
  const auto [begin, size] = task.range;
  queue_->Wait(task.event);
  const Event began = queue_->Mark();
  parts_.clear();
  for (size_t i = 0; i < task.parts; ++i) {
    parts_.push_back(staging_[i].Get(*queue_, summands_[i].Sub(begin, size), begin));
  }
  queue_->Sync();
  const Slice sum = summands_[0].Sub(begin, size);
  if (!memory_.SumInOrder(parts_, staging_[0].Host(sum, begin))) finite_ = false;
  staging_[0].Put(*queue_, sum, begin);
  return {began, queue_->Mark()};
}

}  // namespace trireme
