// class_token, position_embedding, first_token and their gradients.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/tokens.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "engine/cpu/product-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

// Calls each(sample) on all threads; a sample has `size` values.
template <class F>
void ForSamples(const Shard& shard, size_t size, const F& each) {
  ParallelFor(*shard.team, shard.count, 1 + GrainFor(1) / size, [&](size_t begin, size_t end) {
    for (size_t s = begin; s < end; ++s) each(s);
  });
}

template <class From, class To>
void Copy(const From* from, size_t count, To* to) {
  ForLanes(0, count,
           [&](size_t i, size_t n) TRIREME_INLINED { StoreN(LoadN(from + i, n), to + i, n); });
}

}  // namespace

void ClassToken(const Call& call, const Shard& shard) {
  const size_t size = call.inputs[0].size(), out = call.outputs[0].size(), channels = out - size;
  const float* token = shard.state + call.parameters[0].begin;
  WithElement(call.outputs[0], [&](auto element) {
    using T = decltype(element);
    const T* x = call.inputs[0].as<T>();
    T* y = call.outputs[0].as<T>();
    ForSamples(shard, out, [&](size_t s) {
      Copy(token, channels, y + s * out);
      std::copy_n(x + s * size, size, y + s * out + channels);
    });
  });
}

void ClassTokenGrad(const Call& call, const Shard& shard) {
  const size_t size = call.outputs[0].size(), in = call.inputs[0].size(), channels = in - size;
  float* dtoken = shard.summand + call.parameters[0].begin;
  WithElement(call.inputs[0], [&](auto element) HWY_ATTR {
    using T = decltype(element);
    const T* dy = call.inputs[0].as<T>();
    T* dx = call.outputs[0].as<T>();
    ForSamples(shard, in,
               [&](size_t s) { std::copy_n(dy + s * in + channels, size, dx + s * size); });
    ForLanes(0, channels, [&](size_t i, size_t n) TRIREME_INLINED {
      V sum = shard.accumulate ? LoadN(dtoken + i, n) : hn::Zero(Floats());
      for (size_t s = 0; s < shard.count; ++s) sum = hn::Add(sum, LoadN(dy + s * in + i, n));
      StoreN(sum, dtoken + i, n);
    });
  });
}

void PositionEmbedding(const Call& call, const Shard& shard) {
  const size_t size = call.inputs[0].size();
  const float* positions = shard.state + call.parameters[0].begin;
  WithElement(call.outputs[0], [&](auto element) {
    using T = decltype(element);
    const T* x = call.inputs[0].as<T>();
    T* y = call.outputs[0].as<T>();
    ForSamples(shard, size, [&](size_t s) HWY_ATTR {
      ForLanes(0, size, [&](size_t i, size_t n) TRIREME_INLINED {
        StoreN(hn::Add(LoadN(x + s * size + i, n), LoadN(positions + i, n)), y + s * size + i, n);
      });
    });
  });
}

void PositionEmbeddingGrad(const Call& call, const Shard& shard) {
  WithElement(call.inputs[0], [&](auto element) {
    SumRows(call.inputs[0].as<decltype(element)>(), shard.count, call.inputs[0].size(),
            shard.summand + call.parameters[0].begin, shard.accumulate, shard.scratch, *shard.team);
  });
}
size_t PositionEmbeddingGradScratch(const Call& call, size_t samples, size_t) {
  return SumRowsScratch(samples, call.inputs[0].size());
}

// What follows the first token, or its gradient, is float32.
void FirstToken(const Call& call, const Shard& shard) {
  const size_t size = call.inputs[0].size(), channels = call.outputs[0].size();
  float* y = call.outputs[0].floats();
  WithElement(call.inputs[0], [&](auto element) {
    const auto* x = call.inputs[0].as<decltype(element)>();
    ForSamples(shard, channels, [&](size_t s) { Copy(x + s * size, channels, y + s * channels); });
  });
}

void FirstTokenGrad(const Call& call, const Shard& shard) {
  const size_t size = call.outputs[0].size(), channels = call.inputs[0].size();
  const float* dy = call.inputs[0].floats();
  WithElement(call.outputs[0], [&](auto element) {
    using T = decltype(element);
    T* dx = call.outputs[0].as<T>();
    ForSamples(shard, size, [&](size_t s) {
      Copy(dy + s * channels, channels, dx + s * size);
      std::fill_n(dx + s * size + channels, size - channels, T(0));
    });
  });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
