// Included once per instruction set, inside HWY_BEFORE_NAMESPACE.
#if defined(TRIREME_FLAT_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_FLAT_LANES_INL_H
#undef TRIREME_FLAT_LANES_INL_H
#else
#define TRIREME_FLAT_LANES_INL_H
#endif

#include "flat/cpu/inlined.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::loops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector never spans two blocks of a layout.
using FloatTag = hn::CappedTag<float, 16>;

// lanes(d, i) for whole vectors, then one by one: slices are long, and most end at a multiple of
// 16 floats, so the tail costs nothing.
template <class Lanes>
HWY_INLINE void EachLane(size_t n, const Lanes& lanes) {
  const FloatTag d;
  const hn::CappedTag<float, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) lanes(d, i);
  for (; i < n; ++i) lanes(one, i);
}

}  // namespace trireme::loops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
