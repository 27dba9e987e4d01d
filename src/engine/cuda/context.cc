#include "engine/cuda/context.h"

#include "base/assert.h"
#include "engine/cuda/check.h"

namespace trireme::cuda {

Context::Context(std::shared_ptr<const Libraries> libraries, Precision precision, CudaQueue& q,
                 size_t most_sums, bool only_plain)
    : queue(q),
      gemm(libraries, precision),
      conv(libraries, precision, q.stream(), only_plain),
      host_(q.card(), most_sums) {}

const double* Context::SumOverShards(const Batch& batch, const double* sums, double* others,
                                     size_t length) {
  if (!batch.sum_over_shards) return sums;
  TRIREME_ASSERT(length <= host_.size());
  const size_t bytes = length * sizeof(double);
  Check(cudaMemcpyAsync(host_.data(), sums, bytes, cudaMemcpyDeviceToHost, stream()),
        "cudaMemcpyAsync");
  queue.Sync();
  batch.sum_over_shards(host_.values().first(length));
  Check(cudaMemcpyAsync(others, host_.data(), bytes, cudaMemcpyHostToDevice, stream()),
        "cudaMemcpyAsync");
  return others;
}

}  // namespace trireme::cuda
