// class_token, position_embedding, first_token and their gradients.
#include "engine/cuda/tokens.h"

#include "engine/cuda/columns.h"
#include "engine/cuda/kernels.h"

namespace trireme::cuda {
namespace {

TokenSizes SizesOf(const Value& value, size_t samples) {
  return {.samples = samples, .tokens = int(value.pixels()), .channels = value.shape.channels};
}

// Sums over the samples of the first `channels` numbers of each.
Columns ColumnsOf(const Value& dy, int channels, size_t samples) {
  return Columns(samples, channels, dy.element);
}
size_t SumBytes(const Columns& columns) { return columns.parts() * sizeof(float); }

void SumSamples(const Call& call, int channels, const Shard& shard, Context& context) {
  const Value& dy = call.inputs[0];
  const Columns columns = ColumnsOf(dy, channels, shard.count);
  // Those of so many groups that a list of counters would be long have one chunk, and ask none.
  unsigned* const counters = context.counters(columns.chunks > 1 ? columns.groups : 0);
  LaunchSumColumns(context.stream(), columns, dy.data,
                   {reinterpret_cast<float*>(shard.scratch), counters},
                   shard.summand + call.parameter(0), shard.accumulate, dy.size());
}

}  // namespace

void ClassToken(const Call& call, const Shard& shard, Context& context) {
  LaunchClassToken(context.stream(), SizesOf(call.outputs[0], shard.count),
                   shard.state + call.parameter(0), call.inputs[0].array(),
                   call.outputs[0].array());
}

void ClassTokenGrad(const Call& call, const Shard& shard, Context& context) {
  const Value& dy = call.inputs[0];
  SumSamples(call, dy.shape.channels, shard, context);
  LaunchWithoutFirstToken(context.stream(), SizesOf(dy, shard.count), dy.array(),
                          call.outputs[0].array());
}
size_t ClassTokenGradScratchBytes(const Call& call, size_t samples, Context&) {
  return SumBytes(ColumnsOf(call.inputs[0], call.inputs[0].shape.channels, samples));
}

void PositionEmbedding(const Call& call, const Shard& shard, Context& context) {
  LaunchPositions(context.stream(), SizesOf(call.inputs[0], shard.count),
                  shard.state + call.parameter(0), call.inputs[0].array(), call.outputs[0].array());
}

void PositionEmbeddingGrad(const Call& call, const Shard& shard, Context& context) {
  SumSamples(call, int(call.inputs[0].size()), shard, context);
}
size_t PositionEmbeddingGradScratchBytes(const Call& call, size_t samples, Context&) {
  return SumBytes(ColumnsOf(call.inputs[0], int(call.inputs[0].size()), samples));
}

void FirstToken(const Call& call, const Shard& shard, Context& context) {
  LaunchFirstToken(context.stream(), SizesOf(call.inputs[0], shard.count), call.inputs[0].array(),
                   call.outputs[0].array());
}

void FirstTokenGrad(const Call& call, const Shard& shard, Context& context) {
  LaunchFirstTokenGrad(context.stream(), SizesOf(call.outputs[0], shard.count),
                       call.inputs[0].array(), call.outputs[0].array());
}

}  // namespace trireme::cuda
