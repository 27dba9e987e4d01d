#include "strategy/inner/ordered_sum.h"

#include <algorithm>

#include "strategy/step/tags.h"

namespace trireme {

InnerOrderedSum::InnerOrderedSum(Group& group, const std::vector<int>& shards, int summands)
    : group_(group), summands_(summands) {
  const auto turn = [this](const Range&, std::span<const float> sum) {
    return group_.Send(group_.rank() - 1, kTagSumBack, std::as_bytes(sum));
  };
  const auto left = [this](const Range& segment) { back_->Push(segment); };
  chain_ = std::make_unique<SumChain>(group, shards, SumChain::Ends{turn, left});
}

InnerOrderedSum::~InnerOrderedSum() {
  chain_.reset();
  back_.reset();
  DrainQuietly(back_queue_.get());
}

void InnerOrderedSum::Begin(Replica& r) {
  sum_ = r.summands[0];
  back_queue_ = r.device.NewQueue();
  landed_ = back_queue_->Record();
  results_ = Staging(r.device, r.layout.summand);
  back_ = std::make_unique<CommThread<Range>>(
      [this](Range& range) { return Back(range); },
      [this](std::string_view reason) { group_.Abort(reason); }, r.observer.spans, Track::kReturn);
  chain_->Begin(r);
}

void InnerOrderedSum::BucketReady(Replica&, const Bucket& bucket, const Event& event) {
  chain_->BucketReady(bucket, event);
}

void InnerOrderedSum::Reduce(Replica& r) {
  const Event began = r.queue.Mark();  // backward is over
  chain_->Drain();
  back_->Drain();
  landed_ = back_queue_->Record();
  r.queue.Wait(chain_->Record());
  r.queue.Wait(landed_);
  waited_.Add(began, r.queue.Mark());
}

CommWork InnerOrderedSum::Back(const Range& segment) {
  const Event began = back_queue_->Mark();
  const Slice sum = sum_.Sub(segment.begin, segment.size);
  landed_.Wait();
  const std::span<float> host = results_.Host(sum, segment.begin);
  const int rank = group_.rank();
  group_.Receive(rank + 1, kTagSumBack, std::as_writable_bytes(host)).Wait();
  results_.Put(*back_queue_, sum, segment.begin);
  if (rank > 0)
    group_.Send(rank - 1, kTagSumBack, std::as_bytes(std::span<const float>(host))).Wait();
  return {began, back_queue_->Mark()};
}

}  // namespace trireme
