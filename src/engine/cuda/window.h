#pragma once
#include <compare>

namespace trireme::cuda {

// A square window that slides over images: sizes of one sample. NHWC.
struct Window {
  int height = 1, width = 1, channels = 1;  // of the images that it slides over
  int out_height = 1, out_width = 1;        // its places
  int kernel = 1, stride = 1, padding = 0;
  auto operator<=>(const Window&) const = default;
};

// Whether each cell of 2x2 pixels has a window, which begins a pixel before it and ends with it.
constexpr bool SlidesOverCells(const Window& w) {
  return w.kernel == 3 && w.stride == 2 && w.padding == 1 && w.height == 2 * w.out_height &&
         w.width == 2 * w.out_width;
}

// Of a pool over values whose pixels lie row by row, or in cells (cells.h) over which it slides.
struct PoolWindow : Window {
  bool in_cells = false;
};

}  // namespace trireme::cuda
