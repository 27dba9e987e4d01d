#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace trireme {

// fp16: 1 bit of sign, 5 of exponent, 10 of mantissa (IEEE 754), without the help of a compiler or
// processor that knows it.

// To the nearest half, to the even one of two; too large a number becomes infinite.
inline double RoundToHalf(double x) {
  constexpr double kTooLarge = 65520;  // half way from the largest, 65504, to what would come next
  if (std::isnan(x) || x == 0) return x;
  const double size = std::fabs(x);
  if (size >= kTooLarge) return std::copysign(std::numeric_limits<double>::infinity(), x);
  const double unit = std::ldexp(1.0, std::max(std::ilogb(size), -14) - 10);
  return std::copysign(std::nearbyint(size / unit) * unit, x);
}

inline uint16_t HalfBitsOf(double x) {
  constexpr uint16_t kInfinite = 0x7c00, kNan = 0x7e00;
  const double rounded = RoundToHalf(x), size = std::fabs(rounded);
  const auto sign = uint16_t(std::signbit(x) ? 0x8000 : 0);
  if (std::isnan(x)) return sign | kNan;
  if (std::isinf(rounded)) return sign | kInfinite;
  if (size < 0x1p-14) return sign | uint16_t(size * 0x1p24);
  const int exponent = std::ilogb(size);
  return uint16_t(sign | (exponent + 15) << 10 | int(std::ldexp(size, 10 - exponent) - 1024));
}

inline float FloatOfHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double size = std::ldexp(mantissa, -24);
  if (exponent > 0) size = std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) {
    size = mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : std::numeric_limits<double>::infinity();
  }
  return float(bits >> 15 ? -size : size);
}

}  // namespace trireme
