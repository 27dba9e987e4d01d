#include "engine/cuda/pools.h"

#include "engine/cuda/kernels.h"

namespace trireme::cuda {
namespace {

Window Over(const Call& call, const Value& image, const Value& result) {
  return WindowOf(call.attributes(), image.shape, result.shape);
}

}  // namespace

void MaxPool(const Call& call, const Shard& shard, Context& context) {
  LaunchMaxPool(context.stream(), Over(call, call.inputs[0], call.outputs[0]), shard.count,
                call.inputs[0].array(), call.outputs[0].array(), call.outputs[1].bytes());
}

void MaxPoolGrad(const Call& call, const Shard& shard, Context& context) {
  LaunchMaxPoolGrad(context.stream(), Over(call, call.outputs[0], call.inputs[1]), shard.count,
                    call.inputs[0].bytes(), call.inputs[1].array(), call.outputs[0].array());
}

void AveragePool(const Call& call, const Shard& shard, Context& context) {
  LaunchAveragePool(context.stream(), Over(call, call.inputs[0], call.outputs[0]), shard.count,
                    call.inputs[0].array(), call.outputs[0].array());
}

void AveragePoolGrad(const Call& call, const Shard& shard, Context& context) {
  LaunchAveragePoolGrad(context.stream(), Over(call, call.outputs[0], call.inputs[0]), shard.count,
                        call.inputs[0].array(), call.outputs[0].array());
}

void PadChannels(const Call& call, const Shard& shard, Context& context) {
  const Value& y = call.outputs[0];
  LaunchPadChannels(context.stream(), Over(call, call.inputs[0], y), y.shape.channels, shard.count,
                    call.inputs[0].floats(), y.floats());
}

void PadChannelsGrad(const Call& call, const Shard& shard, Context& context) {
  const Value& dy = call.inputs[0];
  LaunchPadChannelsGrad(context.stream(), Over(call, call.outputs[0], dy), dy.shape.channels,
                        shard.count, dy.floats(), call.outputs[0].floats());
}

void GlobalAveragePool(const Call& call, const Shard& shard, Context& context) {
  const Value& x = call.inputs[0];
  LaunchGlobalAveragePool(context.stream(), x.array(), call.outputs[0].array(), shard.count,
                          int(x.pixels()), x.shape.channels);
}

void GlobalAveragePoolGrad(const Call& call, const Shard& shard, Context& context) {
  const Value& dx = call.outputs[0];
  LaunchGlobalAveragePoolGrad(context.stream(), call.inputs[0].array(), dx.array(), shard.count,
                              int(dx.pixels()), dx.shape.channels);
}

}  // namespace trireme::cuda
