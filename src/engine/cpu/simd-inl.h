// Vectors of floats of the current target, and loads and stores that never touch memory beyond n.
// Numbers in memory are floats or bf16; those are widened when they are loaded and rounded to the
// nearest, ties to even, when they are stored.
#if defined(TRIREME_ENGINE_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_SIMD_INL_H_
#undef TRIREME_ENGINE_CPU_SIMD_INL_H_
#else
#define TRIREME_ENGINE_CPU_SIMD_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "engine/cpu/bf16/unit.h"
#include "flat/cpu/inlined.h"
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

using BFloats = hn::Rebind<BFloat, Floats>;

HWY_INLINE V LoadAll(const float* p) { return hn::LoadU(Floats(), p); }
HWY_INLINE V LoadAll(const BFloat* p) {
  const hn::Rebind<uint32_t, Floats> words;
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(BFloats(), p))));
}

HWY_INLINE hn::Vec<BFloats> Narrow(V v) {
  const hn::Rebind<uint32_t, Floats> words;
  const hn::Rebind<int32_t, Floats> ints;
  const auto bits = hn::BitCast(words, v);
  const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto nearest = hn::Add(bits, hn::Add(even, hn::Set(words, 0x7fff)));
  // What is not a number stays so, whichever of its bits are lost.
  const auto quiet = hn::Or(bits, hn::Set(words, 0x400000));
  const auto kept = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(v)), quiet, nearest);
  return hn::DemoteTo(BFloats(), hn::BitCast(ints, hn::ShiftRight<16>(kept)));
}
HWY_INLINE void StoreAll(V v, float* p) { hn::StoreU(v, Floats(), p); }
HWY_INLINE void StoreAll(V v, BFloat* p) { hn::StoreU(Narrow(v), BFloats(), p); }

// Masks of 16 bits are not safe everywhere.
HWY_INLINE V LoadPart(const BFloat* p, size_t n) {
  BFloat lanes[kLanes] = {};
  for (size_t i = 0; i < n; ++i) lanes[i] = p[i];
  return LoadAll(lanes);
}
HWY_INLINE void StorePart(V v, BFloat* p, size_t n) {
  BFloat lanes[kLanes];
  StoreAll(v, lanes);
  for (size_t i = 0; i < n; ++i) p[i] = lanes[i];
}

// Calls each(i, n) for stretches of n <= kLanes values: all whole but the last.
template <class F>
HWY_INLINE void ForLanes(size_t begin, size_t end, const F& each) {
  size_t i = begin;
  for (; i + kLanes <= end; i += kLanes) each(i, kLanes);
  if (i < end) each(i, end - i);
}

// For use inside ForLanes: whole vectors take the plain path.
template <class T>
HWY_INLINE V LoadN(const T* p, size_t n) {
  return n == kLanes ? LoadAll(p) : LoadPart(p, n);
}
template <class T>
HWY_INLINE void StoreN(V v, T* p, size_t n) {
  if (n == kLanes) {
    StoreAll(v, p);
  } else {
    StorePart(v, p, n);
  }
}

// The first n <= kLanes floats of many vectors: masks are made once.
class FirstLanes {
 public:
  HWY_INLINE explicit FirstLanes(size_t n) : n_(n), mask_(hn::FirstN(Floats(), n)) {}
  HWY_INLINE V Load(const float* p) const {
    return kSafeMasks ? hn::MaskedLoad(mask_, Floats(), p) : LoadN(p, n_);
  }
  HWY_INLINE void Store(V v, float* p) const {
    if (kSafeMasks) {
      hn::BlendedStore(v, mask_, Floats(), p);
    } else {
      StoreN(v, p, n_);
    }
  }

 private:
  const size_t n_;
  const hn::Mask<Floats> mask_;
};

// Results this large have left the caches before they are read again. Written past them (Stream,
// then hwy::FlushStream by the same thread) they are not read from memory first: 23 instead of 8
// GB/s on one thread of an AVX-512 machine; below 8 MB the caches won.
constexpr size_t kStreamBytes = 8 << 20;
template <class T>
HWY_INLINE bool MayStream(const T* to, size_t size, size_t row_size) {
  // Of bf16 a vector may be less than a cache line, and lines that are filled in pieces are slow.
  constexpr size_t kUnit = sizeof(T) == sizeof(float) ? kLanes * sizeof(T) : 64;
  return size * sizeof(T) >= kStreamBytes && row_size * sizeof(T) % kUnit == 0 &&
         reinterpret_cast<uintptr_t>(to) % kUnit == 0;
}

HWY_INLINE void Stream(V v, float* p) { hn::Stream(v, Floats(), p); }
HWY_INLINE void Stream(V v, BFloat* p) { hn::Stream(Narrow(v), BFloats(), p); }
template <class T>
HWY_INLINE void StoreN(V v, T* p, size_t n, bool stream) {
  if (stream) {
    Stream(v, p);
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
