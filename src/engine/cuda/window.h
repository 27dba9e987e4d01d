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

}  // namespace trireme::cuda
