// stochastic_depth and its gradient: whether a sample counts is a function of (key, layer,
// position), drawn anew.
#include "base/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/stochastic_depth.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

void StochasticDepth(const Call& call, const Shard& shard) {
  const size_t size = call.inputs[0].size();
  const double rate = call.attributes.rate;
  const Random random(HashKey(shard.batch->random_key, uint64_t(call.attributes.layer)));
  const uint64_t first = static_cast<uint64_t>(shard.batch->first_position);
  WithElement(call.outputs[0], [&](auto element) {
    using T = decltype(element);
    const T* x = call.inputs[0].as<T>();
    T* y = call.outputs[0].as<T>();
    ParallelFor(
        *shard.team, shard.count, 1 + GrainFor(1) / size, [&](size_t begin, size_t end) HWY_ATTR {
          for (size_t s = begin; s < end; ++s) {
            const bool kept = random.Uniform(first + s) >= rate;
            const V scale = hn::Set(Floats(), kept ? static_cast<float>(1 / (1 - rate)) : 0);
            Map(x, y, s * size, (s + 1) * size,
                [&](V v) TRIREME_INLINED { return kept ? hn::Mul(v, scale) : hn::Zero(Floats()); });
          }
        });
  });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
