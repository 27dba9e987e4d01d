#pragma once
#include <memory>
#include <vector>

#include "strategy/courier.h"
#include "strategy/inner.h"

namespace trireme {

// The sum of --deterministic: summands are added in shard order, a left fold that begins with a
// copy of shard 0, so the bits do not depend on the number of workers. The running sum travels
// along the chain of ranks in segments, each rank adds its own shards' summands; the last rank has
// the result and sends it back along the chain. Traffic per step: each rank sends and receives at
// most two summands, no more in total than a ring.
//
// Two communication threads: with one, bucket b + 1 could not go forward before b has come back.
class InnerFold : public Inner {
 public:
  // `shards[r]` summands belong to rank r.
  InnerFold(Group& group, std::vector<int> shards);
  ~InnerFold() override;

  int Summands() const override;
  void Begin(Replica& replica) override;
  void BucketReady(Replica& replica, const Bucket& bucket, const Event& event) override;
  void Reduce(Replica& replica) override;
  double waited_s() const override { return waited_s_; }
  Volume volume() const override { return group_.volume(); }

 private:
  struct Job {
    Range range;
    Event event;
  };
  void Forward(const Job& job);  // a bucket
  void Back(const Range& segment);
  void AddOwn(const Range& segment);
  Ticket SendOn(const Range& segment);

  Group& group_;
  const int shards_;             // own ones
  const int first_;              // the first rank that has a shard: the fold begins there
  const bool last_;              // in the chain
  std::vector<Slice> summands_;  // a copy: in an exception the replica goes before the threads
  std::vector<Slice> parts_;     // own summands of a segment
  bool staged_ = false;          // the host may not touch the device's memory
  std::unique_ptr<Queue> forward_queue_, back_queue_;
  Buffer arrived_;                               // a segment from the rank before
  std::vector<float> host_arrived_;              // staged: the same
  std::vector<float> host_forward_, host_back_;  // staged: whole summands
  Event landed_;  // staged: the last step's results have left host_back_
  double waited_s_ = 0;
  std::unique_ptr<Courier<Range>> back_;
  std::unique_ptr<Courier<Job>> forward_;
};

}  // namespace trireme
