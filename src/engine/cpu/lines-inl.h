// Passes over memory, line by line of the cache.
#if defined(TRIREME_ENGINE_CPU_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_LINES_INL_H_
#undef TRIREME_ENGINE_CPU_LINES_INL_H_
#else
#define TRIREME_ENGINE_CPU_LINES_INL_H_
#endif

#include <algorithm>

#include "engine/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Bytes that a pass fetches ahead of what it reads. Processors guess what comes next, but begin
// again at each page.
constexpr size_t kAhead = 2048;

template <class T>
HWY_INLINE void FetchAhead(const T* p) {
  __builtin_prefetch(p + kAhead / sizeof(T));
}

// As ForLanes; calls fetch(i) once for each line of T, before the vectors that begin in it.
template <class T, class Fetch, class F>
HWY_INLINE void ForLines(size_t begin, size_t end, const Fetch& fetch, const F& each) {
  constexpr size_t kLine = std::max(64 / sizeof(T), kLanes);
  size_t i = begin;
  for (; i + kLine <= end; i += kLine) {
    fetch(i);
    for (size_t v = 0; v < kLine; v += kLanes) each(i + v, kLanes);
  }
  if (i == end) return;
  fetch(i);
  ForLanes(i, end, each);
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
