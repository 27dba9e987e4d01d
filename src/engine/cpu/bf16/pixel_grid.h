#pragma once
#include <cstddef>

#include "engine/cpu/bf16/unit.h"

namespace trireme::cpu::bf16 {

// Pixels of images as a sequence of places, sample after sample, row after row. Places of a grid
// that are no pixels, right of them or below them, stand for zeros.
struct PixelGrid {
  const BFloat* first;                              // pixel 0, 0 of sample 0
  size_t samples, rows, columns;                    // of the grid
  size_t height, width;                             // of the pixels in it
  size_t sample_stride, row_stride, column_stride;  // in values

  size_t places() const { return samples * rows * columns; }
  // Place after place stands in memory as it is.
  bool IsMatrix() const {
    return height == rows && width == columns && row_stride == columns * column_stride &&
           sample_stride == rows * row_stride;
  }

  // lines[i]: where the channels of place begin + i start; `zeros` where there is no pixel, nor
  // such a place.
  void Lines(ptrdiff_t begin, size_t count, const BFloat* zeros, const BFloat** lines) const;
};

}  // namespace trireme::cpu::bf16
