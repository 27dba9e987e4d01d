#pragma once
#include "engine/ref/kernel.h"

namespace trireme::ref {

// Calls visit(output place, window place, input place) for every window of an operation that slides
// one over an image and every place of the window that lies inside the image. A place counts
// pixels, not channels; those of a window are numbered row by row.
template <class Visit>
void ForEachWindow(const Attributes& a, const Shape& image, const Shape& output, Visit visit) {
  for (int h = 0; h < output.height; ++h) {
    for (int w = 0; w < output.width; ++w) {
      for (int kh = 0; kh < a.kernel; ++kh) {
        for (int kw = 0; kw < a.kernel; ++kw) {
          const int row = h * a.stride + kh - a.padding, column = w * a.stride + kw - a.padding;
          if (row < 0 || row >= image.height || column < 0 || column >= image.width) continue;
          visit(int64_t{h} * output.width + w, int64_t{kh} * a.kernel + kw,
                int64_t{row} * image.width + column);
        }
      }
    }
  }
}

}  // namespace trireme::ref
