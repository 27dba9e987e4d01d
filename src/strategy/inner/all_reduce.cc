#include "strategy/inner/all_reduce.h"

#include "flat/arithmetic.h"
#include "strategy/step/tags.h"

namespace trireme {

InnerAllReduce::InnerAllReduce(Group& group, const AllReduceAlgorithm& algorithm, WireType wire)
    : group_(group),
      algorithm_(algorithm),
      wire_(wire),
      hosts_(group, HostOfRank(group, kTagSum)) {}

void InnerAllReduce::Begin(Replica& r) {
  queue_ = r.device.NewQueue();
  scratch_.resize(kAllReduceScratch);
  staging_ = Staging(r.device, r.layout.summand);
  comm_thread_ = std::make_unique<CommThread<Task>>(
      [this](Task& task) { return Run(task); }, [this](std::string_view why) { group_.Abort(why); },
      r.observer.spans);
}

void InnerAllReduce::BeforeStep(Replica& r) {
  if (r.work.shards.empty()) flat::Fill(r.queue, 0, r.summands[0]);  // more workers than shards
}

void InnerAllReduce::BucketReady(Replica& r, const Bucket& bucket, const Event& event) {
  const auto [begin, size] = bucket.range;
  const WireType wire = begin < r.layout.weights ? wire_ : WireType::kF32;
  comm_thread_->Push({r.summands[0].Sub(begin, size), begin, wire, event});
}

void InnerAllReduce::Reduce(Replica& r) {
  const Event began = r.queue.Mark();  // backward is over
  comm_thread_->Drain();
  r.queue.Wait(queue_->Record());
  waited_.Add(began, r.queue.Mark());
}

CommWork InnerAllReduce::Run(const Task& task) {
  queue_->Wait(task.event);
  const Event began = queue_->Mark();
  const std::span<float> host = staging_.Get(*queue_, task.part, task.begin);
  queue_->Sync();
  Sum(task.wire, host);
  staging_.Put(*queue_, task.part, task.begin);
  return {began, queue_->Mark()};
}

void InnerAllReduce::Sum(WireType wire, std::span<float> values) {
  AllReduceSum(algorithm_, wire, hosts_, kTagSum, values, scratch_);
}

}  // namespace trireme
