// relu, sigmoid, tanh, add, and their gradients, which read the output, not the input.
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
