#pragma once
#include <cstddef>

#include "engine/cpu/bf16/place_parts.h"
#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/tiling/patches.h"

namespace trireme::cpu::bf16 {

// How the weight gradient of a convolution with several taps becomes products of matrices: images
// lie on a grid with places of zeros between their rows, so that each tap is a shift along the
// sequence of places. With a stride, the pixels of x that meet the same taps are a grid of their
// own, a phase. Where x has few channels, those of a tap's row are taken together: they lie side by
// side, so only rows of taps are left.

// One dimension. Tap t of output o is pixel stride * (o + shift) + phase.
class TapAxis {
 public:
  TapAxis(size_t kernel, size_t stride, size_t padding, size_t in, size_t out);

  size_t Phase(size_t tap) const { return Dividend(tap) % stride_; }
  ptrdiff_t Shift(size_t tap) const {
    return ptrdiff_t(Dividend(tap) / stride_) - ptrdiff_t(kernel_);
  }
  size_t Pixels(size_t phase) const;  // of x
  size_t Places() const;              // the fewest that keep rows apart

 private:
  // Stays positive: padding < kernel.
  size_t Dividend(size_t tap) const { return tap + stride_ * kernel_ - padding_; }

  size_t kernel_, stride_, padding_, in_, out_;
};

// What the shape alone decides. Blocks are 32 channels; sizes are in BFloats.
struct TapPlan {
  static constexpr size_t kBlock = kPlaceStep;
  static constexpr size_t kMostKernel = 7, kMostStride = 2;
  struct Tap {
    size_t phase;  // its number
    ptrdiff_t shift;
  };
  struct Phase {
    size_t y, x;
  };

  ConvShape shape;
  size_t samples;
  bool joined;  // each tap is a row of them
  TapAxis y, x;
  size_t grid_rows, grid_columns;
  size_t row_values;  // of a tap: channels of x, or all of its row
  size_t row_blocks, column_blocks;
  size_t num_taps = 0, num_phases = 0;
  Tap taps[kMostKernel * kMostKernel];
  Phase phases[kMostStride * kMostStride];
  size_t head = 0, tail = 0;               // places of dy before and behind those of x
  bool has_even = false, has_odd = false;  // shifts

  static bool Takes(const ConvShape& shape, bool joined);
  TapPlan(const ConvShape& shape, size_t samples, bool joined);

  size_t places() const { return samples * grid_rows * grid_columns; }
  size_t sums() const { return num_taps * row_blocks * kBlock * shape.out; }
  PlaceParts parts() const { return {places(), sums(), kLeastPlaces, kMostSums}; }

  // Of a stretch of so many places of x.
  size_t RowValues(size_t length, size_t blocks) const {
    return num_phases * blocks * kBlock * length;
  }
  size_t Lines(size_t length) const;                                             // of dy
  size_t HalfValues(size_t length) const { return Lines(length) / 2 * kBlock; }  // a half's pairs
  size_t ColumnValues(size_t length) const { return 4 * HalfValues(length); }
  size_t TableValues(size_t length) const;
  // Places of x that a stretch has at most.
  size_t Most(size_t blocks) const;
  // What a thread has of its own, at most: rows, columns, a table of lines, a line of zeros.
  size_t ThreadValues() const;

 private:
  // Measured on ResNet-50's layers (Sapphire Rapids, 2 MiB of second cache a core).
  static constexpr size_t kLeastPlaces = 4000;         // of a part
  static constexpr size_t kMostSums = 1024 * 1024;     // of all parts
  static constexpr size_t kCachedValues = 768 * 1024;  // packed rows and columns

  void AddTap(size_t phase_y, size_t phase_x, ptrdiff_t shift);
};

}  // namespace trireme::cpu::bf16
