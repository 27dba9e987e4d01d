#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "base/random.h"

namespace trireme::cuda {

// Keeps, times `scale`, each value whose random number is at least `least` of 2^53, and sets the
// others to 0. The number of value i is that of counter first + i.
struct Mask {
  Random random;
  uint64_t first, least;
  float scale;
};
void LaunchDropout(cudaStream_t stream, const Mask& mask, const float* x, float* y, size_t size);

}  // namespace trireme::cuda
