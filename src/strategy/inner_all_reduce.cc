#include "strategy/inner_all_reduce.h"

#include "base/clock.h"
#include "flat/arithmetic.h"
#include "strategy/tags.h"
#include "transport/all_reduce.h"

namespace trireme {

void InnerAllReduce::Begin(Replica& r) {
  queue_ = r.device.NewQueue();
  scratch_.resize(kRingScratch);
  if (!r.device.host_visible()) staged_.resize(r.layout.summand);
  courier_ = std::make_unique<Courier<Job>>([this](Job& job) { Run(job); },
                                            [this](std::string_view why) { group_.Abort(why); },
                                            r.observer.spans);
}

void InnerAllReduce::BeforeStep(Replica& r) {
  if (r.work.shards.empty()) flat::Fill(r.queue, 0, r.summands[0]);  // more workers than shards
}

void InnerAllReduce::BucketReady(Replica& r, const Bucket& bucket, const Event& event) {
  courier_->Push(
      {r.summands[0].Sub(bucket.range.begin, bucket.range.size), bucket.range.begin, event});
}

void InnerAllReduce::Reduce(Replica& r) {
  const Stopwatch watch;
  courier_->Drain();
  waited_s_ += watch.seconds();
  r.queue.Wait(queue_->Record());
}

void InnerAllReduce::Run(const Job& job) {
  if (staged_.empty()) {
    job.event.Wait();
    AllReduceSum(group_, kTagSum, job.part.host(), scratch_);
    return;
  }
  float* host = staged_.data() + job.begin;
  queue_->Wait(job.event);
  flat::Get(*queue_, job.part, host);
  queue_->Sync();
  AllReduceSum(group_, kTagSum, {host, job.part.size}, scratch_);
  flat::Put(*queue_, host, job.part);
}

}  // namespace trireme
