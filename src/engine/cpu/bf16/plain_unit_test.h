#pragma once
#include <algorithm>
#include <bit>
#include <vector>

#include "engine/cpu/bf16/unit.h"

// For tests: a unit of plain loops, which every machine has.

namespace trireme::cpu {

namespace plain {

inline constexpr size_t kLines = 32, kStep = 32;

inline float Widened(BFloat x) { return std::bit_cast<float>(uint32_t{x} << 16); }
inline float Widened(float x) { return x; }
inline BFloat Nearest(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return BFloat((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Steps of k one after another, each line by line.
template <class T, bool kAcross>
void Pack(const T* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t k = 0; k < (depth + kStep - 1) / kStep * kStep; ++k) {
    for (size_t line = 0; line < kLines; ++line) {
      float value = 0;
      if (line < count && k < depth) {
        const T* from = lines[kAcross ? k : line];
        if (from) value = Widened(from[kAcross ? line : k]);
      }
      to[k / kStep * kLines * kStep + line * kStep + k % kStep] = Nearest(value);
    }
  }
}

inline void Multiply(size_t depth, const BFloat* a, const BFloat* b, const TileTarget& into) {
  for (size_t r = 0; r < into.count; ++r) {
    for (size_t j = 0; j < into.columns; ++j) {
      const size_t column = into.first + j;
      float sum = into.before ? into.before[r][column] : 0;
      for (size_t k = 0; k < depth; ++k) {
        const size_t at = k / kStep * kLines * kStep + k % kStep;
        sum += Widened(a[at + r * kStep]) * Widened(b[at + j * kStep]);
      }
      if (into.bias) sum += into.bias[column];
      if (into.relu) sum = std::max(sum, 0.0f);
      if (into.floats) into.floats[r][column] = sum;
      if (into.bfloats) into.bfloats[r][column] = Nearest(sum);
    }
  }
}

inline std::string Missing() { return ""; }
inline void Nothing() {}
inline double RunChains(size_t) { return 1; }

}  // namespace plain

inline const MatrixUnit kPlainUnit = {
    .name = "plain",
    .rows = plain::kLines,
    .columns = plain::kLines,
    .step = plain::kStep,
    .depth = 512,
    .missing = plain::Missing,
    .begin = plain::Nothing,
    .end = plain::Nothing,
    .floats = {plain::Pack<float, false>, plain::Pack<float, true>, plain::Pack<float, true>},
    .bfloats = {plain::Pack<BFloat, false>, plain::Pack<BFloat, true>, plain::Pack<BFloat, true>},
    .pack_columns_along = plain::Pack<float, false>,
    .multiply = plain::Multiply,
    .run_chains = plain::RunChains,
};

}  // namespace trireme::cpu
