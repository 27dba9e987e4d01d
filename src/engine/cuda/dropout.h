#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/array.h"
#include "engine/cuda/numbers.h"

namespace trireme::cuda {

// Keeps, times `scale`, each value whose random number is at least `least` of 2^53, and sets the
// others to 0. Numbers are those of a layer, by a sample's position and the place in it.
struct Mask {
  const ShardNumbers* numbers;
  uint64_t layer, sample_size, least;
  float scale;
};
void LaunchDropout(cudaStream_t stream, const Mask& mask, Array x, Array y, size_t size);

}  // namespace trireme::cuda
