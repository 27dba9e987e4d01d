// The transforms of Winograd's convolutions F(m x m, 3 x 3) (Lavin and Gray 2015), along one line;
// both ways they turn a tile over. With d an input tile of m + 2 across, g the kernel:
//   y = A^T [(G g G^T) . (B^T d B)] A, summed over channels between the brackets.
// The input gradient (dgrad) is forward with the kernel turned round, the weight gradient (wgrad)
//   dg = G^T [(B^T d B) . (A dy A^T)] G, summed over tiles.
#if defined(TRIREME_ENGINE_CPU_WINOGRAD_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_WINOGRAD_LINES_INL_H_
#undef TRIREME_ENGINE_CPU_WINOGRAD_LINES_INL_H_
#else
#define TRIREME_ENGINE_CPU_WINOGRAD_LINES_INL_H_
#endif

#include "engine/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

HWY_INLINE V Times(float factor, V v) { return hn::Mul(hn::Set(Floats(), factor), v); }
HWY_INLINE V Plus(V a, float factor, V b) { return hn::MulAdd(hn::Set(Floats(), factor), b, a); }

// F(2x2): points 0, 1, -1, infinity.
struct Winograd2 {
  static constexpr size_t kOut = 2, kTile = 4;

  struct Input {  // B^T
    static constexpr size_t kFrom = 4, kTo = 4;
    static HWY_INLINE void Line(const V (&d)[4], V (&t)[4]) {
      t[0] = hn::Sub(d[0], d[2]);
      t[1] = hn::Add(d[1], d[2]);
      t[2] = hn::Sub(d[2], d[1]);
      t[3] = hn::Sub(d[1], d[3]);
    }
  };
  struct Output {  // A^T
    static constexpr size_t kFrom = 4, kTo = 2;
    static HWY_INLINE void Line(const V (&m)[4], V (&y)[2]) {
      y[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
      y[1] = hn::Sub(hn::Sub(m[1], m[2]), m[3]);
    }
  };
  struct OutputGrad {  // A
    static constexpr size_t kFrom = 2, kTo = 4;
    static HWY_INLINE void Line(const V (&y)[2], V (&z)[4]) {
      z[0] = y[0];
      z[1] = hn::Add(y[0], y[1]);
      z[2] = hn::Sub(y[0], y[1]);
      z[3] = hn::Neg(y[1]);
    }
  };
  struct Kernel {  // G
    static constexpr size_t kFrom = 3, kTo = 4;
    static HWY_INLINE void Line(const V (&g)[3], V (&u)[4]) {
      const V even = Times(0.5f, hn::Add(g[0], g[2])), odd = Times(0.5f, g[1]);
      u[0] = g[0];
      u[1] = hn::Add(even, odd);
      u[2] = hn::Sub(even, odd);
      u[3] = g[2];
    }
  };
  struct KernelGrad {  // G^T
    static constexpr size_t kFrom = 4, kTo = 3;
    static HWY_INLINE void Line(const V (&m)[4], V (&g)[3]) {
      const V even = Times(0.5f, hn::Add(m[1], m[2]));
      g[0] = hn::Add(m[0], even);
      g[1] = Times(0.5f, hn::Sub(m[1], m[2]));
      g[2] = hn::Add(even, m[3]);
    }
  };
};

// F(4x4): points 0, 1, -1, 2, -2, infinity.
struct Winograd4 {
  static constexpr size_t kOut = 4, kTile = 6;

  struct Input {
    static constexpr size_t kFrom = 6, kTo = 6;
    static HWY_INLINE void Line(const V (&d)[6], V (&t)[6]) {
      const V far_even = Plus(d[4], -4, d[2]), far_odd = Plus(d[3], -4, d[1]);
      const V near_even = hn::Sub(d[4], d[2]), near_odd = hn::Sub(d[3], d[1]);
      t[0] = Plus(Plus(d[4], -5, d[2]), 4, d[0]);
      t[1] = hn::Add(far_even, far_odd);
      t[2] = hn::Sub(far_even, far_odd);
      t[3] = Plus(near_even, 2, near_odd);
      t[4] = Plus(near_even, -2, near_odd);
      t[5] = Plus(Plus(d[5], -5, d[3]), 4, d[1]);
    }
  };
  struct Output {
    static constexpr size_t kFrom = 6, kTo = 4;
    static HWY_INLINE void Line(const V (&m)[6], V (&y)[4]) {
      const V even1 = hn::Add(m[1], m[2]), odd1 = hn::Sub(m[1], m[2]);
      const V even2 = hn::Add(m[3], m[4]), odd2 = hn::Sub(m[3], m[4]);
      y[0] = hn::Add(m[0], hn::Add(even1, even2));
      y[1] = Plus(odd1, 2, odd2);
      y[2] = Plus(even1, 4, even2);
      y[3] = hn::Add(Plus(odd1, 8, odd2), m[5]);
    }
  };
  struct OutputGrad {
    static constexpr size_t kFrom = 4, kTo = 6;
    static HWY_INLINE void Line(const V (&y)[4], V (&z)[6]) {
      const V even1 = hn::Add(y[0], y[2]), odd1 = hn::Add(y[1], y[3]);
      const V even2 = Plus(y[0], 4, y[2]), odd2 = Plus(Times(2, y[1]), 8, y[3]);
      z[0] = y[0];
      z[1] = hn::Add(even1, odd1);
      z[2] = hn::Sub(even1, odd1);
      z[3] = hn::Add(even2, odd2);
      z[4] = hn::Sub(even2, odd2);
      z[5] = y[3];
    }
  };
  struct Kernel {
    static constexpr size_t kFrom = 3, kTo = 6;
    static HWY_INLINE void Line(const V (&g)[3], V (&u)[6]) {
      const V even1 = Times(-1.0f / 6, hn::Add(g[0], g[2])), odd1 = Times(-1.0f / 6, g[1]);
      const V even2 = Plus(Times(1.0f / 24, g[0]), 1.0f / 6, g[2]);
      const V odd2 = Times(1.0f / 12, g[1]);
      u[0] = Times(0.25f, g[0]);
      u[1] = hn::Add(even1, odd1);
      u[2] = hn::Sub(even1, odd1);
      u[3] = hn::Add(even2, odd2);
      u[4] = hn::Sub(even2, odd2);
      u[5] = g[2];
    }
  };
  struct KernelGrad {
    static constexpr size_t kFrom = 6, kTo = 3;
    static HWY_INLINE void Line(const V (&m)[6], V (&g)[3]) {
      const V even1 = Times(-1.0f / 6, hn::Add(m[1], m[2])), even2 = hn::Add(m[3], m[4]);
      g[0] = Plus(Plus(even1, 0.25f, m[0]), 1.0f / 24, even2);
      g[1] = Plus(Times(1.0f / 12, hn::Sub(m[3], m[4])), -1.0f / 6, hn::Sub(m[1], m[2]));
      g[2] = hn::Add(Plus(even1, 1.0f / 6, even2), m[5]);
    }
  };
};

// Applies T down the columns, then along the rows: store(i, j, value) gets the kTo x kTo results of
// the kFrom x kFrom values load(i, j).
template <class T, class Load, class Store>
HWY_INLINE void BothWays(const Load& load, const Store& store) {
  V middle[T::kTo][T::kFrom];
#pragma GCC unroll 6
  for (size_t j = 0; j < T::kFrom; ++j) {
    V from[T::kFrom], to[T::kTo];
#pragma GCC unroll 6
    for (size_t i = 0; i < T::kFrom; ++i) from[i] = load(i, j);
    T::Line(from, to);
#pragma GCC unroll 6
    for (size_t i = 0; i < T::kTo; ++i) middle[i][j] = to[i];
  }
#pragma GCC unroll 6
  for (size_t i = 0; i < T::kTo; ++i) {
    V to[T::kTo];
    T::Line(middle[i], to);
#pragma GCC unroll 6
    for (size_t j = 0; j < T::kTo; ++j) store(i, j, to[j]);
  }
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
