#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "flat/staging.h"
#include "strategy/inner/comm_thread.h"
#include "strategy/inner/sum_route.h"

namespace trireme {

// A sum in order over shards along a chain of ranks: the running sum begins with a copy of shard 0
// and travels in segments, each rank adds its own shards' summands in order; the last rank has the
// whole. So the bits do not depend on the number of workers. On a communication thread, bucket by
// bucket while backward goes on. Each rank sends and receives at most one summand.
class SumChain : public SumRoute {
 public:
  struct Ends {
    // At the last rank: a segment of the whole sum, which lies in summands[0] and on the host.
    // What it sends is waited for before the next segment but one.
    std::function<Ticket(const Range&, std::span<const float> sum)> turn;
    // Elsewhere: the sum has left, the segment of summands[0] is free for the result.
    std::function<void(const Range&)> left;
  };
  // `shards[r]` summands belong to rank r.
  SumChain(Group& group, const std::vector<int>& shards, Ends ends);
  ~SumChain() override;

  int shards() const override { return shards_; }
  void SetShards(std::span<const int> shards) override;
  void Begin(Replica& replica) override;
  void BucketReady(const Bucket& bucket, const Event& event) override;
  double busy_s() const override { return comm_thread_ ? comm_thread_->busy_s() : 0; }
  void Drain() override;
  Event Record() override { return queue_->Record(); }

 private:
  struct Task {
    Range range;
    Event event;
  };
  CommWork Forward(const Task& task);  // a bucket
  std::span<const float> AddOwn(const Range& segment);
  Ticket SendOn(const Range& segment, std::span<const float> sum);

  Group& group_;
  int shards_ = 0;
  int first_ = 0;  // the first rank that has a shard: the sum begins there
  const bool last_;
  const Ends ends_;
  std::vector<Slice> summands_;  // a copy: in an exception the replica goes before the threads
  std::vector<Slice> parts_;     // own summands of a segment
  size_t segment_ = 0;           // floats that travel at a time
  std::unique_ptr<Queue> queue_;
  Buffer arrived_;  // a segment from the rank before
  Staging arriving_, sum_;
  std::unique_ptr<CommThread<Task>> comm_thread_;
};

}  // namespace trireme
