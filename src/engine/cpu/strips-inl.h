// Matrices of rows x columns, walked in strips of columns that stay in registers.
#if defined(TRIREME_ENGINE_CPU_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_STRIPS_INL_H_
#undef TRIREME_ENGINE_CPU_STRIPS_INL_H_
#else
#define TRIREME_ENGINE_CPU_STRIPS_INL_H_
#endif

#include "engine/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// N vectors of columns from column j on, the last of `rest` lanes unless they are whole. Narrow
// strips take kRows rows at a time, for enough independent sums.
template <size_t N, bool kWhole>
struct Strip {
  static constexpr size_t kVectors = N, kRows = 4 / N;
  size_t j, rest;

  template <class T>
  V Load(const T* p, size_t v) const {
    return kWhole ? LoadAll(p + v * kLanes) : LoadPart(p + v * kLanes, rest);
  }
  void Store(V value, float* p, size_t v) const {
    if constexpr (kWhole) {
      hn::StoreU(value, Floats(), p + v * kLanes);
    } else {
      StorePart(value, p + v * kLanes, rest);
    }
  }
};

template <class F>
HWY_INLINE void ForStrips(size_t columns, const F& each) {
  size_t j = 0;
  for (; j + 4 * kLanes <= columns; j += 4 * kLanes) each(Strip<4, true>{j, kLanes});
  for (; j + 2 * kLanes <= columns; j += 2 * kLanes) each(Strip<2, true>{j, kLanes});
  for (; j + kLanes <= columns; j += kLanes) each(Strip<1, true>{j, kLanes});
  if (j < columns) each(Strip<1, false>{j, columns - j});
}

// Calls each(row, u, v) for the strip's vectors of all rows; u is which of kRows sums takes it.
template <class S, class F>
HWY_INLINE void ForRows(const S&, size_t rows, const F& each) {
  size_t i = 0;
  for (; i + S::kRows <= rows; i += S::kRows) {
#pragma GCC unroll 4
    for (size_t u = 0; u < S::kRows; ++u) {
#pragma GCC unroll 4
      for (size_t v = 0; v < S::kVectors; ++v) each(i + u, u, v);
    }
  }
  for (; i < rows; ++i) {
#pragma GCC unroll 4
    for (size_t v = 0; v < S::kVectors; ++v) each(i, 0, v);
  }
}

// kRows partial sums of each of a strip's vectors.
template <class S>
struct Sums {
  V parts[S::kRows][S::kVectors];
  HWY_INLINE Sums() {
    for (auto& row : parts) {
      for (V& v : row) v = hn::Zero(Floats());
    }
  }
  HWY_INLINE V Total(size_t v) const {
    V sum = parts[0][v];
    for (size_t u = 1; u < S::kRows; ++u) sum = hn::Add(sum, parts[u][v]);
    return sum;
  }
};

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
