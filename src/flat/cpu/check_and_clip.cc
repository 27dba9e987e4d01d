// What CheckAndClip asks of the gradients: are all finite, and how long is the vector? That is a
// dot product.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "flat/cpu/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "flat/cpu/check_and_clip.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::loops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Without its sign a float orders like an integer, with infinity and NaN above all finite values.
float Largest(const float* x, size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  const auto magnitude = hn::Set(di, 0x7fffffff);
  auto most = hn::Zero(di), most2 = hn::Zero(di);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    most = hn::Max(most, hn::And(hn::BitCast(di, hn::LoadU(d, x + i)), magnitude));
    most2 = hn::Max(most2, hn::And(hn::BitCast(di, hn::LoadU(d, x + i + lanes)), magnitude));
  }
  int32_t largest = hn::GetLane(hn::MaxOfLanes(di, hn::Max(most, most2)));
  for (; i < n; ++i) largest = std::max(largest, std::bit_cast<int32_t>(x[i]) & 0x7fffffff);
  return std::bit_cast<float>(largest);
}

double Dot(const float* x, const float* y, size_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const size_t lanes = hn::Lanes(d);
  auto sum = hn::Zero(d), sum2 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::PromoteTo(d, hn::LoadU(narrow, x + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(narrow, x + i + lanes));
    sum = hn::MulAdd(a, hn::PromoteTo(d, hn::LoadU(narrow, y + i)), sum);
    sum2 = hn::MulAdd(b, hn::PromoteTo(d, hn::LoadU(narrow, y + i + lanes)), sum2);
  }
  double total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, sum2)));
  for (; i < n; ++i) total += double(x[i]) * y[i];
  return total;
}

}  // namespace trireme::loops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::loops {
HWY_EXPORT(Largest);
HWY_EXPORT(Dot);

float Largest(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(Largest)(x, n); }

double Dot(const float* x, const float* y, size_t n) { return HWY_DYNAMIC_DISPATCH(Dot)(x, y, n); }

}  // namespace trireme::loops
#endif  // HWY_ONCE
