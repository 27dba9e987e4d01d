// dropout and its gradient: the mask is a function of (key, layer, position, value), drawn anew.
#include <cmath>

#include "base/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/dropout.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

void Dropout(const Call& call, const Shard& shard) {
  const float* x = call.inputs[0].floats();
  float* y = call.outputs[0].floats();
  const size_t size = call.inputs[0].size();
  const double rate = call.attributes.rate;
  const float scale = static_cast<float>(1 / (1 - rate));
  const Random random(HashKey(shard.batch->random_key, uint64_t(call.attributes.layer)));
  const uint64_t first = static_cast<uint64_t>(shard.batch->first_position) * size;
  // Uniform(i) >= rate, where Uniform is the upper 53 bits as a fraction.
  const uint64_t least = static_cast<uint64_t>(std::ceil(rate * 0x1p53));
  ParallelFor(*shard.team, shard.count * size, GrainFor(16), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const bool kept = random.Bits(first + i) >> 11 >= least;
      y[i] = kept ? x[i] * scale : 0.0f;
    }
  });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
