#include "engine/cuda/attention.h"

#include "engine/cuda/kernels.h"

namespace trireme::cuda {
namespace {

AttentionSizes SizesOf(const Call& call, size_t samples) {
  const Value& x = call.inputs[0];
  const int heads = call.attributes().heads;
  return {.samples = samples,
          .tokens = int(x.pixels()),
          .heads = heads,
          .channels = x.shape.channels / 3 / heads};
}

FloatProducts ProductsIn(const Context& context) {
  return context.precision == Precision::kF32 ? FloatProducts::kExact : FloatProducts::kTf32;
}

}  // namespace

void Attend(const Call& call, const Shard& shard, Context& context) {
  LaunchAttention(context.stream(), ProductsIn(context),
                  {.sizes = SizesOf(call, shard.count),
                   .x = call.inputs[0].array(),
                   .y = call.outputs[0].array(),
                   .log_sum = call.outputs[1].floats()});
}

void AttendGrad(const Call& call, const Shard& shard, Context& context) {
  LaunchAttentionGrad(context.stream(), ProductsIn(context),
                      {.sizes = SizesOf(call, shard.count),
                       .x = call.inputs[0].array(),
                       .y = call.inputs[1].array(),
                       .log_sum = call.inputs[2].floats(),
                       .dy = call.inputs[3].array(),
                       .dx = call.outputs[0].array(),
                       .means = reinterpret_cast<float*>(shard.scratch)});
}
size_t AttendGradScratchBytes(const Call& call, size_t samples, Context&) {
  return samples * call.inputs[2].size() * sizeof(float);
}

}  // namespace trireme::cuda
