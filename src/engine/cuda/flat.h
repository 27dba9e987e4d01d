#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "flat/arithmetic.h"

// The kernels behind a card's FlatTable (flat/arithmetic.h says what each does): they are enqueued
// on a stream and see plain pointers. Multiply-adds are fused where the processor's loops fuse
// them, and tiny numbers are flushed as a training processor flushes them: results have the bits of
// the processor's vectors, but for the norm of CheckAndClip and for Dot, whose sums have another
// order.

namespace trireme::cuda {

void LaunchFill(cudaStream_t stream, float value, float* to, size_t n);
void LaunchAdd(cudaStream_t stream, const float* from, float* to, size_t n);
void LaunchBlend(cudaStream_t stream, float a, const float* x, float b, float* y, size_t n);
void LaunchScale(cudaStream_t stream, float a, float* x, size_t n);

struct Summands {
  const float* parts[SliceList::kMost];
  size_t count;
};
void LaunchSumInOrder(cudaStream_t stream, const float* start, const Summands& summands, float* out,
                      size_t n);
void LaunchElasticPull(cudaStream_t stream, float alpha, const float* centre, float* weights,
                       float* pull, size_t n);

// What CheckAndClip looks at. Its sums depend on the number of gradients alone, not on the card.
struct Looked {
  const float* gradients;
  size_t count;
  bool known_finite;
  const float* statistics;
  size_t statistics_count;
};
inline constexpr size_t kMostParts = 1024;  // of a sum
inline constexpr size_t kSumBytes = kMostParts * 2 * sizeof(double);
// `sums`: kSumBytes that no work of another queue touches.
void LaunchCheckAndClip(cudaStream_t stream, const Looked& looked, float clip,
                        const LossScaling& loss, double* sums, float* scale);

// Into *dot. `sums` as for CheckAndClip.
void LaunchDot(cudaStream_t stream, const float* x, const float* y, size_t n, double* sums,
               double* dot);

// decays may be null; so may what a rule does not keep.
struct Updated {
  const float* scale;
  const float* decays;
  const float* gradient;
  float* weight;
  size_t n;
};
void LaunchUpdate(cudaStream_t stream, const SgdRates& rates, const Updated& on, float* velocity);
void LaunchUpdate(cudaStream_t stream, const AdamRates& rates, const Updated& on, float* mean,
                  float* square);
void LaunchUpdate(cudaStream_t stream, const AdagradRates& rates, const Updated& on, float* sum);

void LaunchTrack(cudaStream_t stream, float momentum, const float* scale, const float* seen,
                 float* running, size_t n);

// Into digests[r], of range r.
void LaunchDigest(cudaStream_t stream, const float* from, const RangeList& ranges,
                  uint64_t* digests);

}  // namespace trireme::cuda
