#include "engine/cuda/dropout.h"
#include "engine/cuda/map.cuh"
#include "engine/cuda/mask.cuh"

namespace trireme::cuda {
namespace {

struct Kept {
  Mask mask;
  __device__ float operator()(size_t i, float x) const {
    return Keeps(mask, i) ? x * mask.scale : 0;
  }
};

}  // namespace

void LaunchDropout(cudaStream_t stream, const Mask& mask, Array x, Array y, size_t size) {
  WithElement(x.element, [&](auto zero) {
    using T = decltype(zero);
    Map(stream, size, Kept{mask}, As<T>(y), As<const T>(x));
  });
}

}  // namespace trireme::cuda
