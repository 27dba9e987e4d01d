#include "engine/cuda/losses.h"

#include "engine/cuda/kernels.h"

namespace trireme::cuda {
namespace {

Outputs OutputsOf(const Call& call, const Shard& shard) {
  const Value& values = call.inputs[0];
  return {.samples = shard.count,
          .classes = int(values.size()),
          .values = values.floats(),
          .labels = shard.labels,
          .class_weights = shard.class_weights,
          .mixes = shard.mixes};
}

}  // namespace

void SoftmaxCrossEntropy(const Call& call, const Shard& shard, Context& context) {
  LaunchSoftmaxCrossEntropy(context.stream(), OutputsOf(call, shard), call.attributes().smoothing,
                            call.outputs[0].floats(), call.outputs[1].floats());
}

void SoftmaxCrossEntropyGrad(const Call& call, const Shard& shard, Context& context) {
  LaunchSoftmaxCrossEntropyGrad(context.stream(), OutputsOf(call, shard),
                                call.attributes().smoothing, shard.numbers,
                                call.outputs[0].array());
}

void SquaredError(const Call& call, const Shard& shard, Context& context) {
  LaunchDifference(context.stream(), Difference::kSquared, OutputsOf(call, shard),
                   call.outputs[0].floats());
}

void SquaredErrorGrad(const Call& call, const Shard& shard, Context& context) {
  LaunchDifferenceGrad(context.stream(), Difference::kSquared, OutputsOf(call, shard),
                       shard.numbers, call.outputs[0].floats());
}

void AbsoluteError(const Call& call, const Shard& shard, Context& context) {
  LaunchDifference(context.stream(), Difference::kAbsolute, OutputsOf(call, shard),
                   call.outputs[0].floats());
}

void AbsoluteErrorGrad(const Call& call, const Shard& shard, Context& context) {
  LaunchDifferenceGrad(context.stream(), Difference::kAbsolute, OutputsOf(call, shard),
                       shard.numbers, call.outputs[0].floats());
}

void TallyUp(const Call& call, const Shard& shard, Context& context) {
  LaunchTally(context.stream(), OutputsOf(call, shard),
              {.losses = call.inputs[1].floats(),
               .numbers = shard.numbers,
               .parts = reinterpret_cast<double*>(shard.scratch),
               .counter = context.counters(1),
               .metrics = shard.summand + call.metrics,
               .accumulate = shard.accumulate});
}
size_t TallyUpScratchBytes(const Call&, size_t, Context&) {
  return 2 * Tally::kMostBlocks * sizeof(double);
}

}  // namespace trireme::cuda
