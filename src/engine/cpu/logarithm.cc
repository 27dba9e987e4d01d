#include "engine/cpu/logarithm.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <numbers>

namespace trireme::cpu {

float Logarithm(float x) {
  using Limits = std::numeric_limits<float>;
  if (!(x > 0)) return x == 0 ? -Limits::infinity() : Limits::quiet_NaN();
  if (x == Limits::infinity()) return x;
  // x = 2^exponent * part, part in [sqrt(1/2), sqrt(2)): no float is subnormal as a double.
  constexpr uint64_t kRootOfHalf = 0x3fe6a09e00000000, kFraction = (uint64_t{1} << 52) - 1;
  const uint64_t above = std::bit_cast<uint64_t>(double(x)) - kRootOfHalf;
  const double exponent = double(int64_t(above) >> 52);
  const double part = std::bit_cast<double>((above & kFraction) + kRootOfHalf);
  // log(part) = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172: what is left out is 2^-44 of it, so
  // nearly every result is the nearest float.
  const double s = (part - 1) / (part + 1), s2 = s * s, s4 = s2 * s2;
  const double low = (1 + s2 * (1.0 / 3)) + s4 * (1.0 / 5 + s2 * (1.0 / 7));
  const double high = (1.0 / 9 + s2 * (1.0 / 11)) + s4 * (1.0 / 13 + s2 * (1.0 / 15));
  return float(exponent * std::numbers::ln2 + 2 * s * (low + s4 * s4 * high));
}

}  // namespace trireme::cpu
