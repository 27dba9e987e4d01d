#include "image/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"  // after foreach_target.h

HWY_BEFORE_NAMESPACE();
namespace trireme::rows::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
hn::Vec<D> Load(D d, const uint8_t* in) {
  const hn::RebindToSigned<D> wide;
  const hn::Rebind<uint8_t, D> narrow;
  return hn::ConvertTo(d, hn::PromoteTo(wide, hn::LoadU(narrow, in)));
}

template <class D>
void BlendLanes(D d, const uint8_t* const* lines, const float* weights, size_t taps, size_t i,
                float* out) {
  auto sum = hn::Mul(Load(d, lines[0] + i), hn::Set(d, weights[0]));
  for (size_t t = 1; t < taps; ++t) {
    sum = hn::Add(sum, hn::Mul(Load(d, lines[t] + i), hn::Set(d, weights[t])));
  }
  hn::StoreU(sum, d, out + i);
}

void Blend(const uint8_t* const* lines, const float* weights, size_t taps, size_t n, float* out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) BlendLanes(d, lines, weights, taps, i, out);
  for (; i < n; ++i) BlendLanes(one, lines, weights, taps, i, out);
}

#if HWY_TARGET == HWY_SCALAR
template <int kTaps>
void AcrossBy(const float* line, const int* first, const float* weights, int taps, int size,
              const float* scale, const float* shift, float* out) {
  for (int x = 0; x < size; ++x, weights += taps) {
    for (int c = 0; c < 3; ++c) {
      const float* in = line + 3 * first[x] + c;
      float sum = in[0] * weights[0];
      for (int t = 1; t < taps; ++t) sum += in[3 * t] * weights[t];
      *out++ = sum * scale[c] + shift[c];
    }
  }
}
#else
// A pixel is a vector of four, of which the last is the next pixel's red.
using Pixel = hn::FixedTag<float, 4>;

template <int kTaps>
HWY_INLINE hn::Vec<Pixel> AtPixel(const float* in, const float* weights, int taps) {
  const Pixel d;
  auto sum = hn::Mul(hn::LoadU(d, in), hn::Set(d, weights[0]));
  for (int t = 1; t < (kTaps > 0 ? kTaps : taps); ++t) {
    sum = hn::Add(sum, hn::Mul(hn::LoadU(d, in + 3 * t), hn::Set(d, weights[t])));
  }
  return sum;
}

template <int kTaps>
void AcrossBy(const float* line, const int* first, const float* weights, int taps, int size,
              const float* scale, const float* shift, float* out) {
  const Pixel d;
  const auto by = hn::LoadU(d, scale), plus = hn::LoadU(d, shift);
  for (int x = 0; x + 1 < size; ++x, weights += taps, out += 3) {
    const auto pixel = AtPixel<kTaps>(line + 3 * first[x], weights, taps);
    hn::StoreU(hn::Add(hn::Mul(pixel, by), plus), d, out);  // the fourth is written again
  }
  float last[4];
  const auto pixel = AtPixel<kTaps>(line + 3 * first[size - 1], weights, taps);
  hn::StoreU(hn::Add(hn::Mul(pixel, by), plus), d, last);
  for (int c = 0; c < 3; ++c) out[c] = last[c];
}
#endif  // HWY_SCALAR

void Across(const float* line, const int* first, const float* weights, int taps, int size,
            const float* scale, const float* shift, float* out) {
  switch (taps) {  // the usual ones, unrolled
    case 3:
      return AcrossBy<3>(line, first, weights, taps, size, scale, shift, out);
    case 4:
      return AcrossBy<4>(line, first, weights, taps, size, scale, shift, out);
    case 5:
      return AcrossBy<5>(line, first, weights, taps, size, scale, shift, out);
    default:
      return AcrossBy<0>(line, first, weights, taps, size, scale, shift, out);
  }
}

template <class D>
void RoundLanes(D d, const float* in, uint8_t* out) {
  const hn::Rebind<uint8_t, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(hn::LoadU(d, in))), narrow, out);
}

void Round(const float* in, size_t n, uint8_t* out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) RoundLanes(d, in + i, out + i);
  for (; i < n; ++i) RoundLanes(one, in + i, out + i);
}

}  // namespace trireme::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::rows {
HWY_EXPORT(Blend);
HWY_EXPORT(Across);
HWY_EXPORT(Round);

void Blend(std::span<const uint8_t* const> lines, const float* weights, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(Blend)(lines.data(), weights, lines.size(), n, out);
}

void Across(const float* line, const Filter& filter, const float* scale, const float* shift,
            float* out) {
  HWY_DYNAMIC_DISPATCH(Across)
  (line, filter.first.data(), filter.weights.data(), filter.taps, filter.size(), scale, shift, out);
}

void Round(const float* in, size_t n, uint8_t* out) { HWY_DYNAMIC_DISPATCH(Round)(in, n, out); }

}  // namespace trireme::rows
#endif  // HWY_ONCE
