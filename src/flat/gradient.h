#pragma once
#include <cstddef>
#include <span>

#include "flat/device.h"
#include "flat/layout.h"

namespace trireme {

// Gradients that nobody wrote down: values `begin`, begin + 1, ... of a slice are the rows of
// down * across, the gradient of a dense layer's weights for one sample. In the memory of the
// slice's device.
struct OuterProduct {
  static constexpr size_t kWrap = Layout::kAlignment;
  static constexpr size_t kLeastColumns = kWrap;

  size_t begin;         // a multiple of Layout::kAlignment
  const float* down;    // one for each row
  const float* across;  // one for each column, then the first kWrap of them again
  size_t rows, columns;

  size_t end() const { return begin + rows * columns; }
  // Where what follows in a layout begins.
  size_t next() const {
    return (end() + Layout::kAlignment - 1) / Layout::kAlignment * Layout::kAlignment;
  }
};

// Gradients as an update takes them: a slice, in which some stretches may be unwritten. These are
// in order, do not overlap, and stay alive until the queue has passed.
struct Gradient {
  Gradient(Slice slice) : values(slice) {}  // all written
  Gradient(const Buffer& buffer) : values(buffer) {}
  Gradient(Slice slice, std::span<const OuterProduct> outers) : values(slice), unwritten(outers) {}
  Gradient First(size_t length) const {
    Gradient first = *this;
    first.values = values.Sub(0, length);
    return first;
  }

  Slice values;
  std::span<const OuterProduct> unwritten;
  bool known_finite = false;  // whoever added them up has looked: CheckAndClip need not
};

}  // namespace trireme
