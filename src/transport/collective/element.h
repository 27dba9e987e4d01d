#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme {

// How values travel between ranks, as a policy of the collectives' templates.
//
//   Value     what is added
//   Element   what travels
//   kStages   pieces of scratch memory that the busiest algorithm needs at a time
//   kStaged   values change on their way, so they leave from and arrive in scratch memory
//   Settle    makes a finished sum what the others will see of it
//
// The loops are for the compiler's vectors: no branches, no aliases.

template <class T>
struct AsTheyAre {
  using Value = T;
  using Element = T;
  static constexpr size_t kStages = 2;
  static constexpr bool kStaged = false;

  static void Add(const T* __restrict from, T* __restrict to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] += from[i];
  }
  static void Settle(std::span<T>) {}
};

// The upper half of a float, rounded to nearest, ties to even; a NaN stays one.
inline uint16_t ToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u), quiet = bits | 0x00400000u;
  return uint16_t((value != value ? quiet : rounded) >> 16);  // it is itself, or it is a NaN
}

inline float FromBfloat16(uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }

// Half the bytes. Partial sums are rounded whenever they travel, additions are float's.
struct AsBfloat16 {
  using Value = float;
  using Element = uint16_t;
  static constexpr size_t kStages = 8;
  static constexpr bool kStaged = true;

  static void Pack(const float* __restrict from, uint16_t* __restrict to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = ToBfloat16(from[i]);
  }
  static void Unpack(const uint16_t* __restrict from, float* __restrict to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = FromBfloat16(from[i]);
  }
  static void Add(const uint16_t* __restrict from, float* __restrict to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] += FromBfloat16(from[i]);
  }
  static void Settle(std::span<float> values) {
    for (float& value : values) value = FromBfloat16(ToBfloat16(value));
  }
};

}  // namespace trireme
