#pragma once
#include "engine/cuda/window.h"

namespace trireme::cuda {

// Where an item of a list of NHWC values stands.
struct Place {
  size_t sample;
  int row, column, channel;
};
__device__ inline Place PlaceOf(size_t i, int height, int width, int channels) {
  Place place;
  place.channel = int(i % unsigned(channels));
  i /= unsigned(channels);
  place.column = int(i % unsigned(width));
  i /= unsigned(width);
  place.row = int(i % unsigned(height));
  place.sample = i / unsigned(height);
  return place;
}

// Calls visit(place in the window, pixel of the image) for the places of one window that lie inside
// the image, row by row.
template <class F>
__device__ void ForEachInWindow(const Window& w, int out_row, int out_column, const F& visit) {
  for (int kh = 0; kh < w.kernel; ++kh) {
    const int row = out_row * w.stride + kh - w.padding;
    if (row < 0 || row >= w.height) continue;
    for (int kw = 0; kw < w.kernel; ++kw) {
      const int column = out_column * w.stride + kw - w.padding;
      if (column < 0 || column >= w.width) continue;
      visit(kh * w.kernel + kw, size_t(row) * w.width + column);
    }
  }
}

// Calls visit(place in the window, window) for the windows in which a pixel of the image lies: in
// the order of its places, so that sums have one order.
template <class F>
__device__ void ForEachWindowOver(const Window& w, int row, int column, const F& visit) {
  for (int kh = 0; kh < w.kernel; ++kh) {
    const int down = row + w.padding - kh;
    if (down < 0 || down % w.stride || down / w.stride >= w.out_height) continue;
    for (int kw = 0; kw < w.kernel; ++kw) {
      const int right = column + w.padding - kw;
      if (right < 0 || right % w.stride || right / w.stride >= w.out_width) continue;
      visit(kh * w.kernel + kw, size_t(down / w.stride) * w.out_width + right / w.stride);
    }
  }
}

}  // namespace trireme::cuda
