#include <algorithm>
#include <optional>

#include "engine/cuda/batch_norm.h"
#include "engine/cuda/batch_norm_cluster.h"
#include "engine/cuda/batch_norm_pool.h"
#include "engine/cuda/kernels.h"
#include "engine/cuda/layer_norm.h"
#include "engine/cuda/node_choice.h"

namespace trireme::cuda {
namespace {

Columns ColumnsOf(const Value& x, size_t samples) {
  return Columns(samples * x.pixels(), x.shape.channels, x.element);
}

BatchNormScratch ScratchOf(const Columns& columns, const Shard& shard, const Context& context) {
  return BatchNormScratch(columns, reinterpret_cast<double*>(shard.scratch),
                          context.counters(columns.groups));
}

// What the engine has asked for beside y: its signs (masks.h), or its sums (gram_rules.h).
bool HasFourth(const Call& call, Element element) {
  return call.instruction->outputs.size() > 3 && call.outputs[3].element == element;
}

// How a pass over a value is done in one kernel (NormSizes); none: in two. Sums over other ranks
// come between them.
std::optional<NormCluster> ClusterFor(const Columns& columns, int read, int held, int written,
                                      const Shard& shard, const Context& context) {
  if (shard.batch->sum_over_shards) return {};
  return PlanNormCluster({.rows = columns.rows,
                          .channels = columns.channels,
                          .element_bytes = size_t(BytesOf(columns.element)),
                          .read = read,
                          .held = held,
                          .written = written},
                         context.clusters);
}

// Mean and inv_std, which stand among the outputs from `first` on, and what the summand carries.
BatchNormMeasure MeasureOf(const Call& call, size_t first, const Shard& shard) {
  return {.epsilon = call.attributes().epsilon,
          .mean = call.outputs[first].floats(),
          .inv_std = call.outputs[first + 1].floats(),
          .seen_mean = shard.summand + call.statistic(0),
          .seen_variance = shard.summand + call.statistic(1),
          .numbers = shard.numbers,
          .accumulate = shard.accumulate};
}

void MeasureBatchNorm(const Call& call, const BatchNormMeasure& measure, const Columns& columns,
                      const Shard& shard, Context& context) {
  const BatchNormScratch scratch = ScratchOf(columns, shard, context);
  const bool apart = bool(shard.batch->sum_over_shards);
  LaunchBatchNormSums(context.stream(), columns, call.inputs[0].data, scratch, measure, apart);
  if (!apart) return;
  const double* const all = context.SumOverShards(*shard.batch, scratch.sums, scratch.others,
                                                  BatchNormScratch::length(columns) + 1);
  LaunchBatchNormMeasure(context.stream(), columns.channels, all, measure);
}

// With the mean and inv_std of outputs from `first` on.
BatchNormApply ApplyOf(const Call& call, size_t first, const Shard& shard) {
  return {.x = call.inputs[0].data,
          .mean = call.outputs[first].floats(),
          .inv_std = call.outputs[first + 1].floats(),
          .variance = nullptr,
          .epsilon = 0,
          .weight = shard.state + call.parameter(0),
          .bias = shard.state + call.parameter(1),
          .residual = nullptr,
          .y = call.outputs[0].data,
          .relu = true};
}

void BatchNormForward(const Call& call, const Shard& shard, Context& context, bool add, bool relu) {
  const Columns columns = ColumnsOf(call.inputs[0], shard.count);
  const BatchNormMeasure measure = MeasureOf(call, 1, shard);
  BatchNormApply apply = ApplyOf(call, 1, shard);
  if (add) apply.residual = call.inputs[1].data;
  apply.relu = relu;
  if (HasFourth(call, Element::kByte)) apply.mask = call.outputs[3].bytes();
  float* const sums = HasFourth(call, Element::kFloat) ? call.outputs[3].floats() : nullptr;
  const auto cluster = ClusterFor(columns, add ? 2 : 1, add ? 2 : 1, 1, shard, context);
  if (cluster && !sums) {
    return LaunchBatchNormInCluster(context.stream(), *cluster, columns, measure, apply);
  }
  MeasureBatchNorm(call, measure, columns, shard, context);
  if (sums) {
    LaunchBatchNormApplyAndSum(context.stream(), columns, apply, sums,
                               ScratchOf(columns, shard, context));
  } else {
    LaunchBatchNormApply(context.stream(), columns, apply);
  }
}

// With `summed` dy is found on the way.
void BatchNormBackward(const BatchNormGrad& grad, const BatchNormSummed* summed,
                       const Columns& columns, const Shard& shard, Context& context) {
  const cudaStream_t stream = context.stream();
  if (const auto cluster = ClusterFor(columns, summed ? 3 : 2, 2, summed ? 2 : 1, shard, context)) {
    return LaunchBatchNormGradInCluster(stream, *cluster, columns, grad, summed);
  }
  const BatchNormScratch scratch = ScratchOf(columns, shard, context);
  const bool apart = bool(shard.batch->sum_over_shards);
  if (summed) {
    LaunchBatchNormSummedGradSums(stream, columns, grad, *summed, scratch, apart);
  } else {
    LaunchBatchNormGradSums(stream, columns, grad, scratch, apart);
  }
  if (apart) {
    const double* const all = context.SumOverShards(*shard.batch, scratch.sums, scratch.others,
                                                    BatchNormScratch::length(columns) + 1);
    LaunchBatchNormGradFactors(stream, columns, grad, scratch, all);
  }
  LaunchBatchNormGrad(stream, columns, grad, scratch);
}

void PlainBackward(const Call& call, const Shard& shard, Context& context, bool relu) {
  const BatchNormGrad grad = {.x = call.inputs[0].data,
                              .dy = call.inputs[3].data,
                              .mean = call.inputs[1].floats(),
                              .inv_std = call.inputs[2].floats(),
                              .weight = shard.state + call.parameter(0),
                              .bias = shard.state + call.parameter(1),
                              .dx = call.outputs[0].data,
                              .d_weight = shard.summand + call.parameter(0),
                              .d_bias = shard.summand + call.parameter(1),
                              .accumulate = shard.accumulate,
                              .relu = relu};
  BatchNormBackward(grad, nullptr, ColumnsOf(call.inputs[0], shard.count), shard, context);
}

}  // namespace

void BatchNorm(const Call& call, const Shard& shard, Context& context) {
  BatchNormForward(call, shard, context, /*add=*/false, /*relu=*/false);
}
void BatchNormRelu(const Call& call, const Shard& shard, Context& context) {
  BatchNormForward(call, shard, context, /*add=*/false, /*relu=*/true);
}
void BatchNormAdd(const Call& call, const Shard& shard, Context& context) {
  BatchNormForward(call, shard, context, /*add=*/true, /*relu=*/false);
}
void BatchNormAddRelu(const Call& call, const Shard& shard, Context& context) {
  BatchNormForward(call, shard, context, /*add=*/true, /*relu=*/true);
}
void BatchNormGradient(const Call& call, const Shard& shard, Context& context) {
  PlainBackward(call, shard, context, /*relu=*/false);
}
void BatchNormReluGradient(const Call& call, const Shard& shard, Context& context) {
  PlainBackward(call, shard, context, /*relu=*/true);
}

PoolWindow PoolOf(const Call& call, const Attributes& pool, const Value& x, const Value& y) {
  return {WindowOf(pool, x.shape, y.shape), call.attributes().choice == kInCells};
}

// The engine may have asked for what the pool chose of x (chosen.h).
bool KeepsChosen(const Call& call) { return call.instruction->outputs.size() > 4; }
bool HasChosen(const Call& call) { return call.instruction->inputs.size() > 5; }

void BatchNormReluMaxPool(const Call& call, const Shard& shard, Context& context) {
  const Value &x = call.inputs[0], &y = call.outputs[0];
  const Columns columns = ColumnsOf(x, shard.count);
  MeasureBatchNorm(call, MeasureOf(call, 2, shard), columns, shard, context);
  const Attributes& pool = call.instruction->parts[1].attributes;
  LaunchBatchNormReluMaxPool(context.stream(), columns, PoolOf(call, pool, x, y),
                             ApplyOf(call, 2, shard), call.outputs[1].bytes(),
                             KeepsChosen(call) ? call.outputs[4].data : nullptr);
}

void MaxPoolBatchNormReluGrad(const Call& call, const Shard& shard, Context& context) {
  const Value &index = call.inputs[0], &dy = call.inputs[1], &x = call.inputs[2];
  const Columns columns = ColumnsOf(x, shard.count);
  const BatchNormScratch scratch = ScratchOf(columns, shard, context);
  const PoolWindow window = PoolOf(call, call.attributes(), x, dy);
  const BatchNormGrad grad = {.x = x.data,
                              .dy = dy.data,
                              .mean = call.inputs[3].floats(),
                              .inv_std = call.inputs[4].floats(),
                              .weight = shard.state + call.parameter(0),
                              .bias = shard.state + call.parameter(1),
                              .dx = call.outputs[0].data,
                              .d_weight = shard.summand + call.parameter(0),
                              .d_bias = shard.summand + call.parameter(1),
                              .accumulate = shard.accumulate,
                              .relu = true};
  const bool apart = bool(shard.batch->sum_over_shards);
  if (HasChosen(call)) {
    BatchNormGrad of_chosen = grad;
    of_chosen.x = call.inputs[5].data;
    of_chosen.population = columns.rows;
    const Columns pooled = ColumnsOf(dy, shard.count);
    LaunchBatchNormGradSums(context.stream(), pooled, of_chosen, ScratchOf(pooled, shard, context),
                            apart);
  } else {
    LaunchMaxPoolBatchNormGradSums(context.stream(), columns, window, index.bytes(), grad, scratch,
                                   apart);
  }
  if (apart) {
    const double* const all = context.SumOverShards(*shard.batch, scratch.sums, scratch.others,
                                                    BatchNormScratch::length(columns) + 1);
    LaunchBatchNormGradFactors(context.stream(), columns, grad, scratch, all);
  }
  LaunchMaxPoolBatchNormGrad(context.stream(), columns, window, index.bytes(), grad, scratch);
}
size_t MaxPoolBatchNormReluGradScratchBytes(const Call& call, size_t samples, Context&) {
  return std::max(BatchNormScratch::doubles(ColumnsOf(call.inputs[1], samples)),
                  BatchNormScratch::doubles(ColumnsOf(call.inputs[2], samples))) *
         sizeof(double);
}

void AddReluBatchNormGrad(const Call& call, const Shard& shard, Context& context) {
  const Value &y = call.inputs[2], &x = call.inputs[3];
  const bool masked = y.element == Element::kByte;
  const Columns columns(shard.count * x.pixels(), x.shape.channels, x.element, masked);
  const BatchNormGrad grad = {.x = x.data,
                              .dy = call.outputs[1].data,
                              .mean = call.inputs[4].floats(),
                              .inv_std = call.inputs[5].floats(),
                              .weight = shard.state + call.parameter(0),
                              .bias = shard.state + call.parameter(1),
                              .dx = call.outputs[0].data,
                              .d_weight = shard.summand + call.parameter(0),
                              .d_bias = shard.summand + call.parameter(1),
                              .accumulate = shard.accumulate,
                              .relu = false};
  const BatchNormSummed summed = {.a = call.inputs[0].data,
                                  .b = call.inputs[1].data,
                                  .y = masked ? nullptr : y.data,
                                  .mask = masked ? y.bytes() : nullptr,
                                  .sum = call.outputs[1].data};
  BatchNormBackward(grad, &summed, columns, shard, context);
}
size_t AddReluBatchNormGradScratchBytes(const Call& call, size_t samples, Context&) {
  const Value& x = call.inputs[3];
  const size_t rows = samples * x.pixels();
  const auto doubles = [&](bool eight) {
    return BatchNormScratch::doubles(Columns(rows, x.shape.channels, x.element, eight));
  };
  return std::max(doubles(false), doubles(true)) * sizeof(double);
}

size_t BatchNormScratchBytes(const Call& call, size_t samples, Context&) {
  return BatchNormScratch::doubles(ColumnsOf(call.inputs[0], samples)) * sizeof(double);
}

void BatchNormInference(const Call& call, const Shard& shard, Context& context) {
  LaunchBatchNormApply(context.stream(), ColumnsOf(call.inputs[0], shard.count),
                       {.x = call.inputs[0].data,
                        .mean = shard.state + call.statistic(0),
                        .inv_std = nullptr,
                        .variance = shard.state + call.statistic(1),
                        .epsilon = call.attributes().epsilon,
                        .weight = shard.state + call.parameter(0),
                        .bias = shard.state + call.parameter(1),
                        .residual = nullptr,
                        .y = call.outputs[0].data,
                        .relu = false});
}

namespace {

// Samples, or their tokens, and the values of each.
struct Populations {
  size_t count, size;
  Populations(const Call& call, size_t samples) {
    const Value& x = call.inputs[0];
    size = call.attributes().tokens ? size_t(x.shape.channels) : x.size();
    count = samples * (x.size() / size);
  }
};

// Of the gradients of a layer-norm's parameters.
Columns ColumnsOfLayer(const Call& call, size_t samples) {
  const auto [count, size] = Populations(call, samples);
  return Columns(count, int(size), call.inputs[0].element);
}

}  // namespace

void NormalizeLayer(const Call& call, const Shard& shard, Context& context) {
  const bool affine = call.attributes().affine;
  const auto [count, size] = Populations(call, shard.count);
  LaunchLayerNorm(context.stream(), {.samples = count,
                                     .size = size,
                                     .x = call.inputs[0].array(),
                                     .weight = affine ? shard.state + call.parameter(0) : nullptr,
                                     .bias = affine ? shard.state + call.parameter(1) : nullptr,
                                     .epsilon = call.attributes().epsilon,
                                     .y = call.outputs[0].array(),
                                     .mean = call.outputs[1].floats(),
                                     .inv_std = call.outputs[2].floats()});
}

void NormalizeLayerGrad(const Call& call, const Shard& shard, Context& context) {
  const bool affine = call.attributes().affine;
  const auto [count, size] = Populations(call, shard.count);
  const Columns columns = ColumnsOfLayer(call, shard.count);
  // With so many groups that a list of counters would be long there is one chunk, and none is read.
  unsigned* const counters = context.counters(columns.chunks > 1 ? columns.groups : 0);
  LaunchLayerNormGrad(context.stream(),
                      {.samples = count,
                       .size = size,
                       .x = call.inputs[0].array(),
                       .mean = call.inputs[1].floats(),
                       .inv_std = call.inputs[2].floats(),
                       .dy = call.inputs[3].array(),
                       .weight = affine ? shard.state + call.parameter(0) : nullptr,
                       .dx = call.outputs[0].array(),
                       .d_weight = affine ? shard.summand + call.parameter(0) : nullptr,
                       .d_bias = affine ? shard.summand + call.parameter(1) : nullptr,
                       .accumulate = shard.accumulate},
                      columns, {reinterpret_cast<float*>(shard.scratch), counters});
}
size_t NormalizeLayerGradScratchBytes(const Call& call, size_t samples, Context&) {
  return call.attributes().affine ? ColumnsOfLayer(call, samples).parts() * sizeof(float) : 0;
}

}  // namespace trireme::cuda
