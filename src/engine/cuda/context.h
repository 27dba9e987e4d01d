#pragma once
#include <memory>
#include <span>

#include "engine/cuda/batch_norm_rules.h"
#include "engine/cuda/conv.h"
#include "engine/cuda/device.h"
#include "engine/cuda/gemm.h"
#include "flat/host_memory.h"
#include "graph/engine.h"

namespace trireme::cuda {

// How an engine computes.
struct Settings {
  std::shared_ptr<const Libraries> libraries;
  Precision precision = Precision::kF32;
  bool check = false;                // wait for each operation
  std::shared_ptr<Choices> choices;  // null: nothing is measured, sums have one order
};

// What kernels of one queue compute with: the libraries, their plans, and the way to the host. One
// thread at a time.
class Context {
 public:
  // `most_sums`: doubles of the longest SumOverShards. `only_plain`: see Conv.
  Context(const Settings& settings, CudaQueue& queue, size_t most_sums, bool only_plain = false);

  // Where work goes: to the queue's stream or, while GoAside, to that of another queue (lanes.h).
  cudaStream_t stream() const { return aside_ ? aside_->stream() : queue.stream(); }
  void GoAside(CudaQueue* aside);                            // null: back again
  Element element() const { return OperandsIn(precision); }  // of the operands of products

  // So many counters, for blocks that ask whether they are the last: 0 between two kernels.
  unsigned* counters(int count) const;

  // Sums over the shards of all ranks if they add up (Batch::sum_over_shards), which waits for the
  // card; they then lie in `others`. Gives where the sums are: there, or where they were.
  const double* SumOverShards(const Batch& batch, const double* sums, double* others,
                              size_t length);

  CudaQueue& queue;
  const Precision precision;
  const std::shared_ptr<Choices> choices;
  const ClusterLimits clusters;  // of the card
  Gemm gemm;
  Conv conv;

 private:
  HostBuffer<double> host_;
  CardMemory counters_;  // for each of the two streams
  CudaQueue* aside_ = nullptr;
};

}  // namespace trireme::cuda
