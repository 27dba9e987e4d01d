#include "engine/cuda/launch.cuh"
#include "engine/cuda/pack.cuh"
#include "engine/cuda/pools.h"

namespace trireme::cuda {
namespace {

// Held differently, perhaps: eight make a pack of either.
constexpr int kEight = 8;

// A block takes kLanes packs of kN channels of samples, and each of its kGroups warps a part of
// their pixels: few samples alone would occupy few processors.
constexpr int kLanes = 32, kGroups = kThreads / kLanes;

template <int kN, class X, class Y>
__global__ void __launch_bounds__(kThreads)
    GlobalAveragePool(const X* x, Y* y, size_t packs, int pixels, int channels) {
  __shared__ float sums[kGroups][kN][kLanes];
  const unsigned across = unsigned(channels / kN);
  const int lane = int(threadIdx.x) % kLanes, group = int(threadIdx.x) / kLanes;
  for (size_t first = size_t{blockIdx.x} * kLanes; first < packs;
       first += size_t{gridDim.x} * kLanes) {
    const size_t i = first + lane;
    Floats<kN> sum = {};
    if (i < packs) {
      const X* const from = x + i / across * pixels * channels + i % across * kN;
#pragma unroll 4
      for (int p = group; p < pixels; p += kGroups) {
        const Floats<kN> values = Load<kN>(from + size_t(p) * channels);
#pragma unroll
        for (int k = 0; k < kN; ++k) sum[k] += values[k];
      }
    }
#pragma unroll
    for (int k = 0; k < kN; ++k) sums[group][k][lane] = sum[k];
    __syncthreads();
    if (group == 0 && i < packs) {
#pragma unroll
      for (int k = 0; k < kN; ++k) {
        for (int g = 1; g < kGroups; ++g) sum[k] += sums[g][k][lane];
        sum[k] /= float(pixels);
      }
      Store<kN>(y + i * kN, sum);
    }
    __syncthreads();  // before the next packs
  }
}

// A thread takes kN channels of a pixel.
template <int kN, class Y, class X>
__global__ void GlobalAveragePoolGrad(const Y* dy, X* dx, size_t packs, int pixels, int channels) {
  const unsigned across = unsigned(channels / kN);
  ForEachItem(packs, [=](size_t i) {
    const size_t c = i % across * kN, sample = i / across / unsigned(pixels);
    Floats<kN> share = Load<kN>(dy + sample * channels + c);
#pragma unroll
    for (int k = 0; k < kN; ++k) share[k] /= float(pixels);
    Store<kN>(dx + i * kN, share);
  });
}

// Calls f with a number of each type and with how many of them make a pack.
template <class F>
void WithBoth(Array x, Array y, int channels, const F& f) {
  WithElements(x.element, y.element, [&](auto one, auto other) {
    if (channels % kEight == 0) {
      f(one, other, Constant<kEight>());
    } else {
      f(one, other, Constant<1>());
    }
  });
}

}  // namespace

void LaunchGlobalAveragePool(cudaStream_t stream, Array x, Array y, size_t samples, int pixels,
                             int channels) {
  WithBoth(x, y, channels, [&](auto one, auto other, auto pack) {
    constexpr int kN = pack.value;
    const size_t packs = samples * size_t(channels / kN);
    GlobalAveragePool<kN><<<BlocksFor(packs * kGroups), kThreads, 0, stream>>>(
        As<const decltype(one)>(x), As<decltype(other)>(y), packs, pixels, channels);
  });
}

void LaunchGlobalAveragePoolGrad(cudaStream_t stream, Array dy, Array dx, size_t samples,
                                 int pixels, int channels) {
  WithBoth(dy, dx, channels, [&](auto one, auto other, auto pack) {
    constexpr int kN = pack.value;
    const size_t packs = samples * size_t(pixels) * size_t(channels / kN);
    GlobalAveragePoolGrad<kN><<<BlocksFor(packs), kThreads, 0, stream>>>(
        As<const decltype(one)>(dy), As<decltype(other)>(dx), packs, pixels, channels);
  });
}

}  // namespace trireme::cuda
