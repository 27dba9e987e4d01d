#include "engine/cuda/context.h"

#include "base/assert.h"
#include "engine/cuda/batch_norm_cluster.h"
#include "engine/cuda/check.h"

namespace trireme::cuda {
namespace {

constexpr int kCounters = 1 << 14;

}  // namespace

Context::Context(const Settings& settings, CudaQueue& q, size_t most_sums, bool only_plain)
    : queue(q),
      precision(settings.precision),
      choices(settings.choices),
      clusters(FindClusterLimits(q.card().properties())),
      gemm(settings.libraries, precision, choices.get()),
      conv(settings.libraries, precision, choices.get(), q.stream(), only_plain),
      host_(q.card(), most_sums),
      counters_(q.card(), 2 * kCounters * sizeof(unsigned), "sums") {
  Check(cudaMemsetAsync(counters_.data(), 0, counters_.bytes(), stream()), "cudaMemsetAsync");
}

unsigned* Context::counters(int count) const {
  TRIREME_ASSERT(count <= kCounters);  // a layer of half a million channels
  return static_cast<unsigned*>(counters_.data()) + (aside_ ? kCounters : 0);
}

void Context::GoAside(CudaQueue* aside) {
  if (aside_ == aside) return;
  aside_ = aside;
  conv.Use(stream());
}

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
