#pragma once
#include <vector>

namespace trireme {

// One direction of a resize: which pixels each output pixel is made of, and their weights. A
// triangle as wide as an output pixel (never narrower than an input one): no aliases when
// shrinking, linear interpolation when growing; what Pillow calls BILINEAR.
struct Filter {
  int taps = 0;                // weights per output pixel, the last ones may be 0
  std::vector<int> first;      // the first input pixel of each output pixel
  std::vector<float> weights;  // taps of them for each output pixel, with the sum 1

  int size() const { return static_cast<int>(first.size()); }
};

// From [begin, begin + length) of a line, in pixels and parts of them, to `size` pixels. Pixels
// outside are not used. With `mirrored` the outputs come in reverse.
void MakeFilter(double begin, double length, int size, bool mirrored, Filter& filter);

}  // namespace trireme
