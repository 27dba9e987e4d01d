#pragma once
#include "engine/cuda/pack.cuh"
#include "engine/cuda/window.cuh"

namespace trireme::cuda {

// What reaches kN channels of a pixel from the windows over it that chose it: the gradient of a
// max_pool. `channel` is the first of them.
template <int kN, class T>
__device__ __forceinline__ Floats<kN> GatherFromWindows(const Window& w, const unsigned char* index,
                                                        const T* dy, size_t sample, int row,
                                                        int column, int channel) {
  const size_t first = sample * w.out_height * w.out_width * w.channels + size_t(channel);
  Floats<kN> sum = {};
  ForEachWindowOver(w, row, column, [&](int k, size_t window) {
    const size_t out = first + window * w.channels;
    const Bytes<kN> places = LoadBytes<kN>(index + out);
    const Floats<kN> values = Load<kN>(dy + out);
#pragma unroll
    for (int c = 0; c < kN; ++c) sum[c] += places.values[c] == k ? values[c] : 0;
  });
  return sum;
}

// Pixels that are looked at together: one, or a cell of 2x2 of which each has a window
// (SlidesOverCells). Four windows reach a cell, which is fewer than reach its pixels one by one.
constexpr int kCell = 4;

template <int kN, class T, int kPixels>
struct Pooled {
  size_t at[kPixels];  // the pixels' places in an image's values
  Floats<kN> dy[kPixels];
};

// Of pixel or cell `unit`, counted over all samples, and kN channels.
template <int kN, class T, int kPixels>
__device__ __forceinline__ Pooled<kN, T, kPixels> GatherPixels(const PoolWindow& w,
                                                               const unsigned char* index,
                                                               const T* dy, size_t unit,
                                                               int channel) {
  Pooled<kN, T, kPixels> pooled;
  if constexpr (kPixels == 1) {
    const Place p = PlaceOf(unit, w.height, w.width, 1);
    pooled.at[0] = unit * w.channels + channel;
    pooled.dy[0] = GatherFromWindows<kN>(w, index, dy, p.sample, p.row, p.column, channel);
  } else {
    static_assert(kPixels == kCell);
    const Place p = PlaceOf(unit, w.out_height, w.out_width, 1);
    const size_t line = size_t(w.in_cells ? 2 : w.width) * w.channels;
    const size_t pixel =
        w.in_cells ? unit * kCell : (p.sample * w.height + 2 * p.row) * w.width + 2 * p.column;
    pooled.at[0] = pixel * w.channels + channel;
    pooled.at[1] = pooled.at[0] + w.channels;
    pooled.at[2] = pooled.at[0] + line;
    pooled.at[3] = pooled.at[1] + line;

    // The window over the cell, that to its right, those below.
    const bool right = p.column + 1 < w.out_width, below = p.row + 1 < w.out_height;
    const bool exists[kCell] = {true, right, below, right && below};
    const size_t first = unit * w.channels + channel, down = size_t(w.out_width) * w.channels;
    const size_t begin[kCell] = {first, first + w.channels, first + down,
                                 first + down + w.channels};
    Bytes<kN> places[kCell];
    Raw<kN, T> values[kCell] = {};
#pragma unroll
    for (int i = 0; i < kCell; ++i) {
      if (exists[i]) {
        places[i] = LoadBytes<kN>(index + begin[i]);
        values[i] = Fetch<kN>(dy + begin[i]);
      } else {
#pragma unroll
        for (int c = 0; c < kN; ++c) places[i].values[c] = 0xff;
      }
    }
    // Where each pixel stands in each window; -1: not at all.
    constexpr int kPlaces[kCell][kCell] = {
        {4, -1, -1, -1}, {5, 3, -1, -1}, {7, -1, 1, -1}, {8, 6, 2, 0}};
#pragma unroll
    for (int i = 0; i < kCell; ++i) {
      const Floats<kN> wide = Widen(values[i]);
#pragma unroll
      for (int pixel = 0; pixel < kCell; ++pixel) {
#pragma unroll
        for (int c = 0; c < kN; ++c) {
          const bool chosen = kPlaces[pixel][i] >= 0 && places[i].values[c] == kPlaces[pixel][i];
          pooled.dy[pixel][c] = (i == 0 ? 0 : pooled.dy[pixel][c]) + (chosen ? wide[c] : 0);
        }
      }
    }
  }
  return pooled;
}

}  // namespace trireme::cuda
