#pragma once
#include <cstddef>
#include <cstdint>

#include "graph/graph.h"

namespace trireme::cpu {

// A convolution or a dense layer (an image of one pixel, a kernel of one).
struct ConvShape {
  size_t height, width, in;  // of the input
  size_t out_height, out_width, out;
  size_t kernel, stride, padding;
  size_t winograd = 0;  // outputs along a tile; 0: direct

  size_t in_pixels() const { return height * width; }
  size_t out_pixels() const { return out_height * out_width; }
  bool dense() const { return kernel == 1 && padding == 0 && in_pixels() == 1; }
};

// Of a convolution from a value like `x` to one like `y`; Attributes::choice is ChooseWinograd's.
inline ConvShape ConvShapeOf(const Attributes& a, const Shape& x, const Shape& y) {
  return {size_t(x.height),  size_t(x.width),    size_t(x.channels), size_t(y.height),
          size_t(y.width),   size_t(y.channels), size_t(a.kernel),   size_t(a.stride),
          size_t(a.padding), size_t(a.choice)};
}

// One dimension of the input pixels y = rest + stride * q that meet the same taps, of which there
// are `taps`: tap first_tap + stride * j stands at the output pixel q + offset - j.
struct GradPhase {
  size_t rest, pixels, first_tap, taps, offset;

  GradPhase(size_t which, size_t size, const ConvShape& s)
      : rest(which),
        pixels((size - rest + s.stride - 1) / s.stride),
        first_tap((rest + s.padding) % s.stride),
        taps(first_tap < s.kernel ? (s.kernel - first_tap + s.stride - 1) / s.stride : 0),
        offset((rest + s.padding - first_tap) / s.stride) {}

  // Output pixels before the first one that its first input pixel meets.
  size_t before() const { return taps > offset + 1 ? taps - offset - 1 : 0; }
};

// The rows of a matrix that is never written down: row (sample, y, x) holds, tap by tap, the
// channels of the image's pixel (y * step + first_y + tap_y * tap_step, likewise x), or zeros
// outside of it. A convolution's forward reads its input so, its input gradient (dgrad) the
// gradient of its output. T: float, or BFloat where the image is held in bf16.
template <class T>
struct PatchesOf {
  const T* image;
  ptrdiff_t height, width, channels;  // of the image
  size_t rows_y, rows_x;              // rows of a sample
  ptrdiff_t step, first_y, first_x;
  ptrdiff_t tap_step;  // 1 or -1
  size_t taps_y, taps_x;

  size_t depth() const { return taps_y * taps_x * static_cast<size_t>(channels); }
  // Row after row stands in memory as it is.
  bool IsMatrix() const {
    return taps_y * taps_x == 1 && step == 1 && first_y == 0 && first_x == 0 &&
           ptrdiff_t(rows_y) == height && ptrdiff_t(rows_x) == width;
  }
  const T* MatrixRow(size_t row) const { return image + row * size_t(channels); }
};
using Patches = PatchesOf<float>;

// Goes through the rows of patches one by one.
template <class T>
struct RowWalker {
  const PatchesOf<T>& patches;
  size_t sample, y, x;

  RowWalker(const PatchesOf<T>& p, size_t row)
      : patches(p),
        sample(row / (p.rows_y * p.rows_x)),
        y(row / p.rows_x % p.rows_y),
        x(row % p.rows_x) {}
  void Next() {
    if (++x < patches.rows_x) return;
    x = 0;
    if (++y < patches.rows_y) return;
    y = 0;
    ++sample;
  }
};

// A row of patches: where its taps begin in the image.
template <class T>
struct PatchRowOf {
  const T* image;  // of the sample
  ptrdiff_t y, x;  // of tap 0
};
using PatchRow = PatchRowOf<float>;

template <class T>
PatchRowOf<T> RowAt(const RowWalker<T>& w) {
  const PatchesOf<T>& p = w.patches;
  return {p.image + w.sample * static_cast<size_t>(p.height * p.width * p.channels),
          static_cast<ptrdiff_t>(w.y) * p.step + p.first_y,
          static_cast<ptrdiff_t>(w.x) * p.step + p.first_x};
}

// Where the row of patches (sample, y, x) goes.
template <class T>
struct PlacesOf {
  T* first;
  size_t sample_stride, y_stride, x_stride;

  template <class From>
  T* At(const RowWalker<From>& w) const {
    return first + w.sample * sample_stride + w.y * y_stride + w.x * x_stride;
  }
};
using Places = PlacesOf<float>;

// What happens to a product on its way to memory.
struct Finish {
  const float* bias = nullptr;  // added to each row
  bool relu = false;
  bool add = false;     // to what is there; not with bias
  bool stream = false;  // past the caches, where the sums are written once; not with add
};

// Some taps of a kernel of kernel x kernel.
struct TapGrid {
  size_t first_y, first_x, step, taps_y, taps_x;
  size_t kernel;
  size_t count() const { return taps_y * taps_x; }

  // The place of one of them among all.
  size_t At(size_t tap) const {
    return (first_y + tap / taps_x * step) * kernel + first_x + tap % taps_x * step;
  }
};

}  // namespace trireme::cpu
