#pragma once
#include <cstdint>

namespace trireme {

// One sample's values lie in the order height, width, channel. A row of a table is 1 x 1 x columns.
struct SampleShape {
  int height = 1;
  int width = 1;
  int channels = 1;

  int64_t size() const { return int64_t{height} * width * channels; }
  bool operator==(const SampleShape&) const = default;
};

}  // namespace trireme
