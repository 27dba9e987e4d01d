#include "engine/cuda/add.h"
#include "engine/cuda/map.cuh"

namespace trireme::cuda {
namespace {

struct Sum {
  __device__ float operator()(size_t, float a, float b) const { return a + b; }
};
struct SumWherePositive {
  __device__ float operator()(size_t, float a, float b, float y) const { return y > 0 ? a + b : 0; }
};
struct Same {
  __device__ float operator()(size_t, float x) const { return x; }
};

}  // namespace

void LaunchAdd(cudaStream_t stream, Array a, Array b, Array y, size_t size) {
  WithElement(y.element, [&](auto zero) {
    using T = decltype(zero);
    Map(stream, size, Sum(), As<T>(y), As<const T>(a), As<const T>(b));
  });
}

void LaunchAddReluGrad(cudaStream_t stream, Array a, Array b, Array y, Array dx, size_t size) {
  WithElement(dx.element, [&](auto zero) {
    using T = decltype(zero);
    Map(stream, size, SumWherePositive(), As<T>(dx), As<const T>(a), As<const T>(b),
        As<const T>(y));
  });
}

void LaunchConvert(cudaStream_t stream, Array from, Array to, size_t size) {
  WithElements(from.element, to.element, [&](auto one, auto other) {
    Map(stream, size, Same(), As<decltype(other)>(to), As<const decltype(one)>(from));
  });
}

}  // namespace trireme::cuda
