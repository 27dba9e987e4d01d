// Fills, sums and blends of slices: each is one pass over memory.
#include "flat/cpu/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "flat/cpu/combine.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "flat/cpu/lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::loops::HWY_NAMESPACE {

void Fill(float value, float* to, size_t n) {
  EachLane(n, [=](auto d, size_t i) TRIREME_INLINED { hn::StoreU(hn::Set(d, value), d, to + i); });
}

void Add(const float* from, float* to, size_t n) {
  EachLane(n, [=](auto d, size_t i) TRIREME_INLINED {
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  });
}

void Blend(float a, const float* x, float b, float* y, size_t n) {
  EachLane(n, [=](auto d, size_t i) TRIREME_INLINED {
    const auto kept = hn::Mul(hn::Set(d, b), hn::LoadU(d, y + i));
    hn::StoreU(hn::MulAdd(hn::Set(d, a), hn::LoadU(d, x + i), kept), d, y + i);
  });
}

void Scale(float a, float* x, size_t n) {
  EachLane(n, [=](auto d, size_t i) TRIREME_INLINED {
    hn::StoreU(hn::Mul(hn::Set(d, a), hn::LoadU(d, x + i)), d, x + i);
  });
}

void SumInOrder(const float* start, const SliceList& parts, size_t at, float* out, size_t n) {
  EachLane(n, [=, &parts](auto d, size_t i) TRIREME_INLINED {
    auto sum = hn::LoadU(d, start + i);
    for (size_t p = 0; p < parts.size; ++p) {
      sum = hn::Add(sum, hn::LoadU(d, parts.items[p].data + at + i));
    }
    hn::StoreU(sum, d, out + i);
  });
}

void ElasticPull(float alpha, const float* centre, float* weights, float* pull, size_t n) {
  EachLane(n, [=](auto d, size_t i) TRIREME_INLINED {
    const auto w = hn::LoadU(d, weights + i);
    const auto by = hn::Mul(hn::Set(d, alpha), hn::Sub(w, hn::LoadU(d, centre + i)));
    hn::StoreU(by, d, pull + i);
    hn::StoreU(hn::Sub(w, by), d, weights + i);
  });
}

}  // namespace trireme::loops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::loops {
HWY_EXPORT(Fill);
HWY_EXPORT(Add);
HWY_EXPORT(Blend);
HWY_EXPORT(Scale);
HWY_EXPORT(SumInOrder);
HWY_EXPORT(ElasticPull);

void Fill(float value, float* to, size_t n) { HWY_DYNAMIC_DISPATCH(Fill)(value, to, n); }

void Add(const float* from, float* to, size_t n) { HWY_DYNAMIC_DISPATCH(Add)(from, to, n); }

void Blend(float a, const float* x, float b, float* y, size_t n) {
  HWY_DYNAMIC_DISPATCH(Blend)(a, x, b, y, n);
}

void Scale(float a, float* x, size_t n) { HWY_DYNAMIC_DISPATCH(Scale)(a, x, n); }

void SumInOrder(const float* start, const SliceList& parts, size_t at, float* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(SumInOrder)(start, parts, at, out, n);
}

void ElasticPull(float alpha, const float* centre, float* weights, float* pull, size_t n) {
  HWY_DYNAMIC_DISPATCH(ElasticPull)(alpha, centre, weights, pull, n);
}

}  // namespace trireme::loops
#endif  // HWY_ONCE
