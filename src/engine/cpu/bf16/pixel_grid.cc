#include "engine/cpu/bf16/pixel_grid.h"

#include <algorithm>

namespace trireme::cpu::bf16 {

void PixelGrid::Lines(ptrdiff_t begin, size_t count, const BFloat* zeros,
                      const BFloat** lines) const {
  size_t i = 0;
  for (; i < count && begin + ptrdiff_t(i) < 0; ++i) lines[i] = zeros;
  const size_t start = size_t(begin + ptrdiff_t(i)), there = places();
  const size_t end = i + std::min(count - i, there - std::min(there, start));
  if (IsMatrix()) {
    const BFloat* line = first + start * column_stride;
    for (; i < end; ++i, line += column_stride) lines[i] = line;
  } else {
    size_t column = start % columns, row = start / columns % rows;
    const BFloat* sample = first + start / columns / rows * sample_stride;
    while (i < end) {  // row by row
      const size_t row_end = std::min(end, i + columns - column);
      if (row < height) {
        const size_t pixels = std::min(row_end - i, width - std::min(width, column));
        const BFloat* line = sample + row * row_stride + column * column_stride;
        for (const size_t last = i + pixels; i < last; ++i, line += column_stride) lines[i] = line;
      }
      for (; i < row_end; ++i) lines[i] = zeros;
      column = 0;
      if (++row == rows) {
        row = 0;
        sample += sample_stride;
      }
    }
  }
  for (; i < count; ++i) lines[i] = zeros;
}

}  // namespace trireme::cpu::bf16
