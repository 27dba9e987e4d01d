#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "flat/staging.h"
#include "strategy/inner/comm_thread.h"
#include "strategy/inner/sum_route.h"

namespace trireme {

// A sum at rank 0: every other rank sends its summands straight to it, and it adds them up in the
// order of the ranks and their shards. The bits are those of SumChain; the first rank receives all
// summands instead of one.
class SumStar : public SumRoute {
 public:
  // `shards[r]` summands belong to rank r; none to rank 0.
  SumStar(Group& group, const std::vector<int>& shards);
  ~SumStar() override;

  int shards() const override { return shards_[size_t(group_.rank())]; }
  void SetShards(std::span<const int> shards) override {
    std::ranges::copy(shards, shards_.begin());
  }
  void Begin(Replica& replica) override;
  void BucketReady(const Bucket& bucket, const Event& event) override;
  double busy_s() const override { return comm_thread_ ? comm_thread_->busy_s() : 0; }
  void Drain() override;
  Event Record() override { return queue_->Record(); }

 private:
  static constexpr int kServer = 0;
  struct Task {
    Range range;
    Event event;
  };
  bool adds() const { return group_.rank() == kServer; }
  CommWork Forward(const Task& task);     // a bucket
  void SendOwn(const Range& segment);     // to rank 0
  void AddArrived(const Range& segment);  // at rank 0

  Group& group_;
  std::vector<int> shards_;      // of all ranks
  std::vector<Slice> summands_;  // a copy: in an exception the replica goes before the threads
  size_t segment_ = 0;           // floats that travel at a time
  std::unique_ptr<Queue> queue_;
  Buffer arrived_;               // at rank 0: a segment of every summand, in order
  Staging staging_;              // of it, or of own segments on their way
  std::vector<Slice> parts_;     // of arrived_
  std::vector<Ticket> tickets_;  // of a segment
  std::unique_ptr<CommThread<Task>> comm_thread_;
};

}  // namespace trireme
