#include "engine/cuda/launch.cuh"
#include "engine/cuda/pool_gather.cuh"
#include "engine/cuda/pools.h"

namespace trireme::cuda {
namespace {

// A thread takes kN channels of a window, or of a pixel.
template <int kN, class T>
__global__ void MaxPool(Window w, size_t packs, const T* x, T* y, uint8_t* index) {
  const int across = w.channels / kN;
  ForEachItem(packs, [=](size_t i) {
    const Place at = PlaceOf(i, w.out_height, w.out_width, across);
    const T* image = x + at.sample * w.height * w.width * w.channels + size_t(at.channel) * kN;
    Floats<kN> largest;
    int where[kN];
#pragma unroll
    for (int c = 0; c < kN; ++c) largest[c] = 0, where[c] = -1;
    ForEachInWindow(w, at.row, at.column, [&](int k, size_t pixel) {
      const Floats<kN> values = Load<kN>(image + pixel * w.channels);
#pragma unroll
      for (int c = 0; c < kN; ++c) {
        if (where[c] >= 0 && values[c] <= largest[c]) continue;  // the first maximum wins
        largest[c] = values[c];
        where[c] = k;
      }
    });
    Store<kN>(y + i * kN, largest);
    Bytes<kN> places;
#pragma unroll
    for (int c = 0; c < kN; ++c) places.values[c] = uint8_t(where[c]);
    StoreBytes<kN>(index + i * kN, places);
  });
}

// Each pixel gathers from the windows over it.
template <int kN, class T>
__global__ void MaxPoolGrad(Window w, size_t packs, const uint8_t* index, const T* dy, T* dx) {
  const int across = w.channels / kN;
  ForEachItem(packs, [=](size_t i) {
    const Place at = PlaceOf(i, w.height, w.width, across);
    const Floats<kN> sum =
        GatherFromWindows<kN>(w, index, dy, at.sample, at.row, at.column, at.channel * kN);
    Store<kN>(dx + i * kN, sum);
  });
}

}  // namespace

void LaunchMaxPool(cudaStream_t stream, const Window& w, size_t samples, Array x, Array y,
                   uint8_t* index) {
  WithPack(x.element, w.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const size_t packs = samples * w.out_height * w.out_width * (w.channels / kN);
    MaxPool<kN>
        <<<BlocksFor(packs), kThreads, 0, stream>>>(w, packs, As<const T>(x), As<T>(y), index);
  });
}

void LaunchMaxPoolGrad(cudaStream_t stream, const Window& w, size_t samples, const uint8_t* index,
                       Array dy, Array dx) {
  WithPack(dy.element, w.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const size_t packs = samples * w.height * w.width * (w.channels / kN);
    MaxPoolGrad<kN>
        <<<BlocksFor(packs), kThreads, 0, stream>>>(w, packs, index, As<const T>(dy), As<T>(dx));
  });
}

}  // namespace trireme::cuda
