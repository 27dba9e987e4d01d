#pragma once
#include <memory>
#include <vector>

#include "flat/staging.h"
#include "strategy/inner/comm_thread.h"
#include "strategy/inner/inner.h"
#include "transport/collective/all_reduce.h"

namespace trireme {

// Sums summands over a group by messages, bucket by bucket, on a communication thread while
// backward goes on (Horovod; PyTorch DDP). Traffic per step and rank: what the algorithm sends of a
// summand; a ring 2 (N - 1) / N each way. Buckets go in their order on all ranks. As bf16 only
// gradients travel; the tail stays as it is.
class InnerAllReduce : public Inner {
 public:
  InnerAllReduce(Group& group, const AllReduceAlgorithm& algorithm, WireType wire);
  ~InnerAllReduce() override {
    comm_thread_.reset();
    DrainQuietly(queue_.get());
  }
  void Begin(Replica& replica) override;
  void BeforeStep(Replica& replica) override;
  bool Listens() const override { return true; }
  void BucketReady(Replica& replica, const Bucket& bucket, const Event& event) override;
  double waited_s() const override { return waited_.seconds(); }
  double busy_s() const override { return comm_thread_ ? comm_thread_->busy_s() : 0; }
  Volume volume() const override { return group_.volume(); }

 protected:
  void Reduce(Replica& replica) override;

 private:
  struct Task {
    Slice part;
    size_t begin;
    WireType wire;
    Event event;
  };
  CommWork Run(const Task& task);
  void Sum(WireType wire, std::span<float> values);

  Group& group_;
  const AllReduceAlgorithm& algorithm_;
  const WireType wire_;
  HostGroups hosts_;
  std::unique_ptr<Queue> queue_;
  std::vector<float> scratch_;
  Staging staging_;  // of the summand
  WorkTimes waited_;
  std::unique_ptr<CommThread<Task>> comm_thread_;  // its thread uses the rest
};

}  // namespace trireme
