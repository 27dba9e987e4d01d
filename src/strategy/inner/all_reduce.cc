#include "strategy/inner/all_reduce.h"

#include "base/clock.h"
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
  if (!r.device.host_visible()) staged_.resize(r.layout.summand);
  comm_thread_ = std::make_unique<CommThread<Task>>(
      [this](Task& task) { Run(task); }, [this](std::string_view why) { group_.Abort(why); },
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
  const Stopwatch watch;
  comm_thread_->Drain();
  waited_s_ += watch.seconds();
  r.queue.Wait(queue_->Record());
}

void InnerAllReduce::Run(const Task& task) {
  if (staged_.empty()) {
    task.event.Wait();
    Sum(task.wire, task.part.host());
    return;
  }
  float* host = staged_.data() + task.begin;
  queue_->Wait(task.event);
  flat::Get(*queue_, task.part, host);
  queue_->Sync();
  Sum(task.wire, {host, task.part.size});
  flat::Put(*queue_, host, task.part);
}

void InnerAllReduce::Sum(WireType wire, std::span<float> values) {
  AllReduceSum(algorithm_, wire, hosts_, kTagSum, values, scratch_);
}

}  // namespace trireme
