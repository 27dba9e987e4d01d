#pragma once
#include "engine/cuda/window.h"

namespace trireme::cuda {

// Where an item of a list of NHWC values stands.
struct Place {
  size_t sample;
  int row, column, channel;
};

template <class Index>
__device__ Place PlaceBy(Index i, unsigned height, unsigned width, unsigned channels) {
  Place place;
  place.channel = int(i % channels);
  i /= channels;
  place.column = int(i % width);
  i /= width;
  place.row = int(i % height);
  place.sample = i / height;
  return place;
}

// Divisions of 64 bits take long, and few lists need them.
__device__ inline Place PlaceOf(size_t i, int height, int width, int channels) {
  const unsigned h = unsigned(height), w = unsigned(width), c = unsigned(channels);
  return i >> 32 ? PlaceBy(i, h, w, c) : PlaceBy(unsigned(i), h, w, c);
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

// The first of the windows in which a pixel lies, in one direction; the last is at most
// (pixel + padding) / stride.
__device__ inline int FirstWindowOver(const Window& w, int pixel) {
  const int behind = pixel + w.padding - w.kernel + 1;  // beginnings of windows up to here
  return behind <= 0 ? 0 : (behind + w.stride - 1) / w.stride;
}

// Calls visit(place in the window, window) for the windows in which a pixel of the image lies: in
// the order of the windows, so that sums have one order.
template <class F>
__device__ void ForEachWindowOver(const Window& w, int row, int column, const F& visit) {
  const int down = (row + w.padding) / w.stride, right = (column + w.padding) / w.stride;
  const int first_column = FirstWindowOver(w, column);
  for (int i = FirstWindowOver(w, row); i <= down && i < w.out_height; ++i) {
    const int kh = row + w.padding - i * w.stride;
    for (int k = first_column; k <= right && k < w.out_width; ++k) {
      const int kw = column + w.padding - k * w.stride;
      visit(kh * w.kernel + kw, size_t(i) * w.out_width + k);
    }
  }
}

}  // namespace trireme::cuda
