#pragma once
#include <memory>
#include <vector>

#include "flat/staging.h"
#include "strategy/inner/comm_thread.h"
#include "strategy/inner/inner.h"
#include "transport/shared_memory.h"

namespace trireme {

// Sums summands where they lie, in memory that all ranks address (threads, processes of one
// machine), bucket by bucket, on a communication thread while backward goes on. Each rank adds its
// stretch of all summands in shard order and writes it to all: a sum in order, so with a summand
// per shard this is the sum of --deterministic at no extra price. Memory traffic per step: every
// summand is read once and one per rank is written. Each looks whether its stretch is finite, so
// that no rank's guard has to read all of the sum again.
class InnerShared : public Inner {
 public:
  // `summands`: one, or one per own shard, of a step with the most; at most
  // SharedMemory::kMostParts.
  InnerShared(Group& group, int summands)
      : group_(group), memory_(*group.shared_memory()), num_summands_(summands) {}
  ~InnerShared() override {
    comm_thread_.reset();
    DrainQuietly(queue_.get());
  }
  int Summands() const override { return num_summands_; }
  Slice Place(Role role, size_t floats, Device& device) override;
  void Begin(Replica& replica) override;
  bool Listens() const override { return true; }
  void BucketReady(Replica& replica, const Bucket& bucket, const Event& event) override;
  bool SumIsFinite() const override { return sum_is_finite_; }
  double waited_s() const override { return waited_.seconds(); }
  double busy_s() const override { return comm_thread_ ? comm_thread_->busy_s() : 0; }
  Volume volume() const override { return group_.volume(); }

 protected:
  void Reduce(Replica& replica) override;

 private:
  struct Task {
    Range range;
    size_t parts;
    Event event;
  };
  CommWork Run(const Task& task);

  Group& group_;
  SharedMemory& memory_;
  const int num_summands_;
  std::vector<Slice> summands_;          // a copy: in an exception the replica goes first
  std::vector<Staging> staging_;         // of the summands, in the group's memory
  std::vector<std::span<float>> parts_;  // of a bucket
  std::unique_ptr<Queue> queue_;
  bool finite_ = true;          // what was summed of this step so far
  bool sum_is_finite_ = false;  // all of it
  WorkTimes waited_;
  std::unique_ptr<CommThread<Task>> comm_thread_;  // its thread uses the rest
};

}  // namespace trireme
