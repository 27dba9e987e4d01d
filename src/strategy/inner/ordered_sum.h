#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "strategy/inner/sum_chain.h"

namespace trireme {

// The sum of --deterministic by messages: a sum along the chain of ranks, and from the last rank
// the result goes back along it. Traffic per step: each rank sends and receives at most two
// summands, no more in total than a ring.
//
// Two communication threads: with one, bucket b + 1 could not go forward before b has come back.
class InnerOrderedSum : public Inner {
 public:
  // `shards[r]` summands belong to rank r; this one has place for `summands`.
  InnerOrderedSum(Group& group, const std::vector<int>& shards, int summands);
  ~InnerOrderedSum() override;

  int Summands() const override { return summands_; }
  void SetShards(std::span<const int> shards) override { chain_->SetShards(shards); }
  void Begin(Replica& replica) override;
  bool Listens() const override { return true; }
  void BucketReady(Replica& replica, const Bucket& bucket, const Event& event) override;
  double waited_s() const override { return waited_.seconds(); }
  // Its two threads work at the same time.
  double busy_s() const override { return back_ ? std::max(chain_->busy_s(), back_->busy_s()) : 0; }
  Volume volume() const override { return group_.volume(); }

 protected:
  void Reduce(Replica& replica) override;

 private:
  CommWork Back(const Range& segment);

  Group& group_;
  const int summands_;
  Slice sum_;  // summands[0]
  std::unique_ptr<Queue> back_queue_;
  Staging results_;
  Event landed_;  // the last step's have left it
  WorkTimes waited_;
  std::unique_ptr<CommThread<Range>> back_;
  std::unique_ptr<SumChain> chain_;  // feeds back_
};

}  // namespace trireme
