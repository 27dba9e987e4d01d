// Functions of one value, vector by vector.
#if defined(TRIREME_ENGINE_CPU_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_ELEMENTWISE_INL_H_
#undef TRIREME_ENGINE_CPU_ELEMENTWISE_INL_H_
#else
#define TRIREME_ENGINE_CPU_ELEMENTWISE_INL_H_
#endif

#include "base/team.h"
#include "engine/cpu/call.h"
#include "engine/cpu/simd-inl.h"
#include "engine/cpu/tiling/divide.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Highway's Exp makes 0 of what is not a number.
HWY_INLINE V Exponential(V x) { return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(Floats(), x)); }

HWY_INLINE V Logistic(V x) {
  const Floats d;
  const V one = hn::Set(d, 1.0f);
  const V bounded = hn::IfThenElse(hn::Lt(x, hn::Set(d, -88.0f)), hn::Set(d, -88.0f), x);
  return hn::Div(one, hn::Add(one, Exponential(hn::Neg(bounded))));
}

HWY_INLINE V HyperbolicTangent(V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(Floats(), x));
}

// y = f(x) for n values; y may be x. A part of a vector is computed as a whole one, so it does not
// matter where threads divide the values.
template <class T, class F>
HWY_INLINE void Map(const T* x, T* y, size_t begin, size_t end, const F& f) {
  ForLanes(begin, end,
           [&](size_t i, size_t n) TRIREME_INLINED { StoreN(f(LoadN(x + i, n)), y + i, n); });
}
// z = f(x, y); z may be x or y.
template <class T, class F>
HWY_INLINE void Map(const T* x, const T* y, T* z, size_t begin, size_t end, const F& f) {
  ForLanes(begin, end, [&](size_t i, size_t n) TRIREME_INLINED {
    StoreN(f(LoadN(x + i, n), LoadN(y + i, n)), z + i, n);
  });
}

// Values of a block that is worth a thread of its own when each costs about `cost` multiply-adds.
constexpr size_t GrainFor(size_t cost) { return kParallelWork / 8 / cost; }

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
