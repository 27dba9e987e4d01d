// Vectors of floats of the current target, and loads and stores that never touch memory beyond n.
#if defined(TRIREME_ENGINE_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_SIMD_INL_H_
#undef TRIREME_ENGINE_CPU_SIMD_INL_H_
#else
#define TRIREME_ENGINE_CPU_SIMD_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;
constexpr size_t kLanes =
    hn::MaxLanes(Floats());  // exact: no target here has vectors of unknown size

// AVX2 and AVX-512 do not touch lanes that are masked off; the others would.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
constexpr bool kSafeMasks = true;
#else
constexpr bool kSafeMasks = false;
#endif

// The first n <= kLanes floats, then zeros.
HWY_INLINE V LoadPart(const float* p, size_t n) {
  const Floats d;
  if constexpr (kSafeMasks) {
    return hn::MaskedLoad(hn::FirstN(d, n), d, p);
  } else {
    HWY_ALIGN float lanes[kLanes] = {};
    for (size_t i = 0; i < n; ++i) lanes[i] = p[i];
    return hn::Load(d, lanes);
  }
}

HWY_INLINE void StorePart(V v, float* p, size_t n) {
  const Floats d;
  if constexpr (kSafeMasks) {
    hn::BlendedStore(v, hn::FirstN(d, n), d, p);
  } else {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v, d, lanes);
    for (size_t i = 0; i < n; ++i) p[i] = lanes[i];
  }
}

// Calls each(i, n) for stretches of n <= kLanes values: all whole but the last.
template <class F>
HWY_INLINE void ForLanes(size_t begin, size_t end, const F& each) {
  size_t i = begin;
  for (; i + kLanes <= end; i += kLanes) each(i, kLanes);
  if (i < end) each(i, end - i);
}

// For use inside ForLanes: whole vectors take the plain path.
HWY_INLINE V LoadN(const float* p, size_t n) {
  return n == kLanes ? hn::LoadU(Floats(), p) : LoadPart(p, n);
}
HWY_INLINE void StoreN(V v, float* p, size_t n) {
  if (n == kLanes) {
    hn::StoreU(v, Floats(), p);
  } else {
    StorePart(v, p, n);
  }
}

// Results this large have left the caches before they are read again. Written past them (Stream,
// then hwy::FlushStream by the same thread) they are not read from memory first: 23 instead of 8
// GB/s on one thread of an AVX-512 machine; below 8 MB the caches won.
constexpr size_t kStreamFloats = 2 << 20;
HWY_INLINE bool MayStream(const float* to, size_t floats, size_t row_floats) {
  return floats >= kStreamFloats && row_floats % kLanes == 0 &&
         reinterpret_cast<uintptr_t>(to) % (kLanes * sizeof(float)) == 0;
}

HWY_INLINE void StoreN(V v, float* p, size_t n, bool stream) {
  if (stream) {
    hn::Stream(v, Floats(), p);
  } else {
    StoreN(v, p, n);
  }
}

// Not a number stays what it is, so that it is noticed.
HWY_INLINE V PositivePart(V v) { return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(Floats())), v); }

HWY_INLINE float Sum(V v) { return hn::GetLane(hn::SumOfLanes(Floats(), v)); }
HWY_INLINE float Largest(V v) { return hn::GetLane(hn::MaxOfLanes(Floats(), v)); }

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
