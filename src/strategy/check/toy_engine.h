#pragma once
// For tests: a model of flat slices whose gradient is a plain loop, and a worker that trains it.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/state_image.h"
#include "flat/host_memory.h"
#include "strategy/strategy.h"

namespace trireme::toy {

// Weight j wants to be where the samples' targets are: loss = half the squared distance, averaged.
// One statistic: the mean of the samples' own value. Where the loss is scaled, gradients overflow
// as those of float16 do.
struct Model {
  explicit Model(size_t weights, size_t bucket = 1 << 14);
  Layout layout;
  std::vector<Bucket> buckets;
  std::vector<float> initial;
};

// What a sample wants of a weight: around 1 + weight mod 3.
float Target(int64_t epoch, int64_t position, size_t weight);

using MakeDevice = std::function<std::unique_ptr<Device>()>;
std::unique_ptr<Device> Host();

// As a checkpoint keeps it.
struct Memory : StateImage {
  std::vector<float> state;  // the snapshot's weights
  int64_t step = 0;
};

// The trainer's part of a step, and its order of calls.
class Worker {
 public:
  Worker(const Model& model, const OptimizerOptions& optimizer, const Plan& plan, Device& device,
         Strategy& strategy);
  ~Worker();

  void Start(std::span<const float> state, int64_t step, const StateReader* resume);
  Turn Step();  // one turn; its work is in replica().work
  void Finish();
  std::vector<float> Snapshot();
  void Save(Memory& memory);  // a snapshot and what belongs to it

  Replica& replica() { return replica_; }
  int64_t step() const { return step_; }
  double last_loss();  // of the whole step
  std::function<void(const Work&)> before_shards, before_last_bucket;
  std::function<double(int64_t samples)> epoch_seconds;  // that computing an epoch's took
  // Behind a shard's backward; shards of one summand add to what is there.
  std::function<void(const Work&, const Shard&, std::span<float> summand)> after_backward;

 private:
  void ReadWeights();
  float LossScale();
  void RunShard(const Shard& shard, size_t which, bool accumulate, bool last);

  const Model& model_;
  Strategy& strategy_;
  std::unique_ptr<Queue> queue_;
  Schedule schedule_;
  Updater updater_;
  std::vector<Slice> summands_;
  Replica replica_;
  HostBuffer<float> weights_, host_;
  int64_t step_ = 0, epoch_samples_ = 0;
};

}  // namespace trireme::toy
