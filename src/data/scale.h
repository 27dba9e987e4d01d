#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme {

// out = in * scale + shift, where bytes stand for byte / 255. Both factors repeat after `period`
// values. Multiplied and added one after the other on every machine, so the bits are the same.
struct ScalePattern {
  const float* scale;
  const float* shift;
  size_t period;
};

void ScaleBytes(std::span<const uint8_t> in, const ScalePattern& pattern, float* out);
void ScaleFloats(std::span<const float> in, const ScalePattern& pattern,
                 float* out);  // out may be in

}  // namespace trireme
