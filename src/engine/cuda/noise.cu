#include "base/random.h"
#include "engine/cuda/launch.cuh"
#include "engine/cuda/noise.h"
#include "engine/cuda/pack.cuh"

namespace trireme::cuda {
namespace {

template <class T>
__global__ void Noise(T* to, size_t size) {
  const Random random(1);
  ForEachItem(size, [=](size_t i) { to[i] = T(float(2 * random.Uniform(i) - 1)); });
}

}  // namespace

void LaunchNoise(cudaStream_t stream, Array to, size_t size) {
  WithElement(to.element, [&](auto zero) {
    Noise<<<BlocksFor(size), kThreads, 0, stream>>>(As<decltype(zero)>(to), size);
  });
}

}  // namespace trireme::cuda
