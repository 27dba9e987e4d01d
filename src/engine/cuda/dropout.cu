#include "base/random.h"
#include "engine/cuda/dropout.h"
#include "engine/cuda/launch.cuh"

namespace trireme::cuda {
namespace {

__global__ void Dropout(Mask mask, const float* x, float* y, size_t size) {
  const Random random(HashKey(mask.numbers->random_key, mask.layer));
  const uint64_t first = mask.numbers->first_position * mask.sample_size;
  ForEachItem(size, [=](size_t i) {
    const bool kept = random.Bits(first + i) >> 11 >= mask.least;
    y[i] = kept ? x[i] * mask.scale : 0;
  });
}

}  // namespace

void LaunchDropout(cudaStream_t stream, const Mask& mask, const float* x, float* y, size_t size) {
  Dropout<<<BlocksFor(size), kThreads, 0, stream>>>(mask, x, y, size);
}

}  // namespace trireme::cuda
