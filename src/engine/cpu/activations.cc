// relu, sigmoid, tanh, gelu, add, and their gradients, which read the output; gelu's the input.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/activations.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "engine/cpu/lines-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

template <class F>
void MapOne(const Call& call, const Shard& shard, size_t cost, const F& f) {
  WithElement(call.outputs[0], [&](auto element) {
    using T = decltype(element);
    const T* x = call.inputs[0].as<T>();
    T* y = call.outputs[0].as<T>();
    ParallelFor(*shard.team, shard.count * call.outputs[0].size(), GrainFor(cost),
                [&](size_t begin, size_t end) HWY_ATTR { Map(x, y, begin, end, f); });
  });
}

template <class F>
void MapTwo(const Call& call, const Shard& shard, const F& f) {
  WithElement(call.outputs[0], [&](auto element) {
    using T = decltype(element);
    const T *x = call.inputs[0].as<T>(), *y = call.inputs[1].as<T>();
    T* z = call.outputs[0].as<T>();
    ParallelFor(*shard.team, shard.count * call.outputs[0].size(), GrainFor(1),
                [&](size_t begin, size_t end) HWY_ATTR { Map(x, y, z, begin, end, f); });
  });
}

// erf(x) as an odd rational function, at most 7e-8 off; beyond 4 it is 1 to float32.
HWY_INLINE V ErrorFunction(V x) {
  const Floats d;
  const V bounded = hn::Max(hn::Min(x, hn::Set(d, 4.0f)), hn::Set(d, -4.0f));
  const V square = hn::Mul(bounded, bounded);
  V above = hn::Set(d, -2.72614225801306e-10f);
  for (const float factor :
       {2.77068142495902e-08f, -2.10102402082508e-06f, -5.69250639462346e-05f,
        -7.34990630326855e-04f, -2.95459980854025e-03f, -1.60960333262415e-02f}) {
    above = hn::MulAdd(above, square, hn::Set(d, factor));
  }
  V below = hn::Set(d, -1.45660718464996e-05f);
  for (const float factor : {-2.13374055278905e-04f, -1.68282697438203e-03f, -7.37332916720468e-03f,
                             -1.42647390514189e-02f}) {
    below = hn::MulAdd(below, square, hn::Set(d, factor));
  }
  return hn::Div(hn::Mul(bounded, above), below);
}

// The share of a normal distribution below x.
HWY_INLINE V NormalBelow(V x) {
  const V half = hn::Set(Floats(), 0.5f);
  return hn::MulAdd(half, ErrorFunction(hn::Mul(x, hn::Set(Floats(), 0.707106781f))), half);
}

template <class T>
void AddWherePositive(const T* a, const T* b, const T* y, T* dx, size_t begin, size_t end) {
  ForLines<T>(
      begin, end,
      [&](size_t i) TRIREME_INLINED {
        FetchAhead(a + i);
        FetchAhead(b + i);
        FetchAhead(y + i);
      },
      [&](size_t i, size_t n) TRIREME_INLINED {
        const V sum = hn::Add(LoadN(a + i, n), LoadN(b + i, n));
        const auto passes = hn::Gt(LoadN(y + i, n), hn::Zero(Floats()));
        StoreN(hn::IfThenElseZero(passes, sum), dx + i, n);
      });
}

}  // namespace

void Relu(const Call& call, const Shard& shard) {
  MapOne(call, shard, 1, [](V x) TRIREME_INLINED { return PositivePart(x); });
}
void Sigmoid(const Call& call, const Shard& shard) {
  MapOne(call, shard, 8, [](V x) TRIREME_INLINED { return Logistic(x); });
}
void Tanh(const Call& call, const Shard& shard) {
  MapOne(call, shard, 8, [](V x) TRIREME_INLINED { return HyperbolicTangent(x); });
}

void Gelu(const Call& call, const Shard& shard) {
  MapOne(call, shard, 16, [](V x) TRIREME_INLINED { return hn::Mul(x, NormalBelow(x)); });
}

void ReluGrad(const Call& call, const Shard& shard) {
  MapTwo(call, shard, [](V y, V dy) TRIREME_INLINED {
    return hn::IfThenElseZero(hn::Gt(y, hn::Zero(Floats())), dy);
  });
}
void SigmoidGrad(const Call& call, const Shard& shard) {
  MapTwo(call, shard, [](V y, V dy) TRIREME_INLINED {
    return hn::Mul(dy, hn::NegMulAdd(y, y, y));  // y (1 - y)
  });
}
void TanhGrad(const Call& call, const Shard& shard) {
  MapTwo(call, shard, [](V y, V dy) TRIREME_INLINED {
    return hn::Mul(dy, hn::NegMulAdd(y, y, hn::Set(Floats(), 1.0f)));
  });
}

void GeluGrad(const Call& call, const Shard& shard) {
  MapTwo(call, shard, [](V x, V dy) TRIREME_INLINED {
    const V half_square = hn::Mul(hn::Mul(x, x), hn::Set(Floats(), -0.5f));
    const V density = hn::Mul(hn::Exp(Floats(), half_square), hn::Set(Floats(), 0.398942280f));
    return hn::Mul(dy, hn::MulAdd(x, density, NormalBelow(x)));
  });
}

void Add(const Call& call, const Shard& shard) {
  MapTwo(call, shard, [](V a, V b) TRIREME_INLINED { return hn::Add(a, b); });
}
void AddReluGrad(const Call& call, const Shard& shard) {
  WithElement(call.outputs[0], [&](auto element) {
    using T = decltype(element);
    ParallelFor(*shard.team, shard.count * call.outputs[0].size(), GrainFor(1),
                [&](size_t begin, size_t end) {
                  AddWherePositive(call.inputs[0].as<T>(), call.inputs[1].as<T>(),
                                   call.inputs[2].as<T>(), call.outputs[0].as<T>(), begin, end);
                });
  });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
