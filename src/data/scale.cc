#include "data/scale.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/scale.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"  // after foreach_target.h

HWY_BEFORE_NAMESPACE();
namespace trireme::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
hn::Vec<D> LoadValues(D d, const float* in) {
  return hn::LoadU(d, in);
}

template <class D>
hn::Vec<D> LoadValues(D d, const uint8_t* in) {
  const hn::RebindToSigned<D> wide;
  const hn::Rebind<uint8_t, D> narrow;
  const auto value = hn::ConvertTo(d, hn::PromoteTo(wide, hn::LoadU(narrow, in)));
  return hn::Mul(value, hn::Set(d, 1.0f / 255));
}

template <class D, class T>
void ScaleLanes(D d, const T* in, const float* scale, const float* shift, float* out) {
  const auto scaled = hn::Mul(LoadValues(d, in), hn::LoadU(d, scale));
  hn::StoreU(hn::Add(scaled, hn::LoadU(d, shift)), d, out);
}

template <class T>
void Scale(const T* in, size_t n, const ScalePattern& pattern, float* out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  for (size_t begin = 0; begin < n; begin += pattern.period) {
    const size_t length = std::min(pattern.period, n - begin);
    size_t i = 0;
    for (; i + hn::Lanes(d) <= length; i += hn::Lanes(d)) {
      ScaleLanes(d, in + begin + i, pattern.scale + i, pattern.shift + i, out + begin + i);
    }
    for (; i < length; ++i) {
      ScaleLanes(one, in + begin + i, pattern.scale + i, pattern.shift + i, out + begin + i);
    }
  }
}

void ScaleBytes(const uint8_t* in, size_t n, const ScalePattern& pattern, float* out) {
  Scale(in, n, pattern, out);
}

void ScaleFloats(const float* in, size_t n, const ScalePattern& pattern, float* out) {
  Scale(in, n, pattern, out);
}

}  // namespace trireme::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme {
HWY_EXPORT(ScaleBytes);
HWY_EXPORT(ScaleFloats);

void ScaleBytes(std::span<const uint8_t> in, const ScalePattern& pattern, float* out) {
  HWY_DYNAMIC_DISPATCH(ScaleBytes)(in.data(), in.size(), pattern, out);
}

void ScaleFloats(std::span<const float> in, const ScalePattern& pattern, float* out) {
  // Rows of small tables: not worth a jump.
  if (in.size() <= 16 && in.size() <= pattern.period) {
    for (size_t i = 0; i < in.size(); ++i) out[i] = in[i] * pattern.scale[i] + pattern.shift[i];
    return;
  }
  HWY_DYNAMIC_DISPATCH(ScaleFloats)(in.data(), in.size(), pattern, out);
}

}  // namespace trireme
#endif  // HWY_ONCE
