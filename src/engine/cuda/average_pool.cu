#include "engine/cuda/launch.cuh"
#include "engine/cuda/pack.cuh"
#include "engine/cuda/pools.h"
#include "engine/cuda/window.cuh"

namespace trireme::cuda {
namespace {

template <int kN>
__device__ void Accumulate(Floats<kN>& sum, const Floats<kN>& values) {
#pragma unroll
  for (int c = 0; c < kN; ++c) sum[c] += values[c];
}
template <int kN>
__device__ void Divide(Floats<kN>& sum, const Window& w) {
#pragma unroll
  for (int c = 0; c < kN; ++c) sum[c] /= float(w.kernel * w.kernel);
}

// A thread takes kN channels of a window, or of a pixel.
template <int kN, class T>
__global__ void AveragePool(Window w, size_t packs, const T* x, T* y) {
  const int across = w.channels / kN;
  ForEachItem(packs, [=](size_t i) {
    const Place at = PlaceOf(i, w.out_height, w.out_width, across);
    const T* image = x + at.sample * w.height * w.width * w.channels + size_t(at.channel) * kN;
    Floats<kN> sum = {};
    ForEachInWindow(w, at.row, at.column, [&](int, size_t pixel) {
      Accumulate(sum, Load<kN>(image + pixel * w.channels));
    });
    Divide(sum, w);
    Store<kN>(y + i * kN, sum);
  });
}

template <int kN, class T>
__global__ void AveragePoolGrad(Window w, size_t packs, const T* dy, T* dx) {
  const int across = w.channels / kN;
  ForEachItem(packs, [=](size_t i) {
    const Place at = PlaceOf(i, w.height, w.width, across);
    const size_t first =
        at.sample * w.out_height * w.out_width * w.channels + size_t(at.channel) * kN;
    Floats<kN> sum = {};
    ForEachWindowOver(w, at.row, at.column, [&](int, size_t window) {
      Accumulate(sum, Load<kN>(dy + first + window * w.channels));
    });
    Divide(sum, w);
    Store<kN>(dx + i * kN, sum);
  });
}

}  // namespace

void LaunchAveragePool(cudaStream_t stream, const Window& w, size_t samples, Array x, Array y) {
  WithPack(x.element, w.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const size_t packs = samples * w.out_height * w.out_width * (w.channels / kN);
    AveragePool<kN><<<BlocksFor(packs), kThreads, 0, stream>>>(w, packs, As<const T>(x), As<T>(y));
  });
}

void LaunchAveragePoolGrad(cudaStream_t stream, const Window& w, size_t samples, Array dy,
                           Array dx) {
  WithPack(dy.element, w.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const size_t packs = samples * w.height * w.width * (w.channels / kN);
    AveragePoolGrad<kN>
        <<<BlocksFor(packs), kThreads, 0, stream>>>(w, packs, As<const T>(dy), As<T>(dx));
  });
}

}  // namespace trireme::cuda
