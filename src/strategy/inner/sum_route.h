#pragma once
#include "strategy/inner/inner.h"

namespace trireme {

// Floats that travel at a time, a multiple of a cache line's: with the summands of a few shards
// still in the cache; more where a rank stages them, which waits for its device at each segment.
// All ranks of the group call it and get the same, which is no more than a summand needs.
size_t AgreeOnSegment(Group& group, const Replica& replica);

// The way on which the summands of workers become one sum, on a communication thread, bucket by
// bucket while backward goes on. The order of additions is that of the ranks and their shards,
// whatever the way: equal bits.
class SumRoute {
 public:
  virtual ~SumRoute() = default;
  virtual int shards() const = 0;  // own ones: what they add up to is sent
  // `shards[r]` summands belong to rank r, from the next step on.
  virtual void SetShards(std::span<const int> shards) = 0;
  virtual void Begin(Replica& replica) = 0;
  virtual void BucketReady(const Bucket& bucket, const Event& event) = 0;
  virtual void Drain() = 0;  // all buckets have gone through this rank
  // What this rank's queue still does to the summands.
  virtual Event Record() = 0;
  virtual double busy_s() const = 0;
};

}  // namespace trireme
