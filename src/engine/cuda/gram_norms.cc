// conv2d and batch_norm in one, for products: gram_rules.h says why, gram.h how things are called.
#include <algorithm>

#include "base/assert.h"
#include "engine/cuda/activations.h"
#include "engine/cuda/gram.h"
#include "engine/cuda/gram_rules.h"
#include "engine/cuda/masks.h"
#include "engine/cuda/pieces.h"

namespace trireme::cuda {
namespace {

GramSizes SizesOf(const Value& x, const Value& y, size_t samples) {
  return {samples * x.pixels(), x.shape.channels, y.shape.channels};
}

// Of W, and of scale and shift of the norm: IsWorthGram wants no bias of the convolution.
void RequireProduct(const Call& call, const Attributes& conv) {
  TRIREME_ASSERT(IsProduct(conv) && call.instruction->parameters.size() == 3);
}

// ---- moments of x

// Their pieces of scratch memory.
struct MomentSpace {
  MomentSpace(Pieces& pieces, const GramSizes& s, Element element)
      : columns(s.rows, s.in, element),
        parts(pieces.TakeFloats(columns.parts())),
        gram(pieces.TakeFloats(size_t(s.in) * size_t(s.in))),
        wide(pieces.TakeFloats(s.weights())) {}
  Columns columns;
  float *parts, *gram, *wide;
};

MatrixProduct GramProduct(const GramSizes& s, const Context& context) {
  return {.rows = s.in,
          .depth = int64_t(s.rows),
          .columns = s.in,
          .a_transposed = true,
          .operands = context.element()};
}
MatrixProduct CovariantProduct(const GramSizes& s) {
  return {.rows = s.in, .depth = s.in, .columns = s.out, .exact = true};
}

// As they lie in a value that is kept, or in scratch memory.
struct Moments {
  Moments(float* at, const GramSizes& s) : covariant(at), sums(at + s.weights()) {}
  float *covariant, *sums;
};

// Of x as products read it. `sums`: null, or its own are there already.
void FindMoments(const void* x, const float* sums, Array weights, const GramSizes& s,
                 const MomentSpace& space, const Moments& to, Context& context,
                 std::byte* scratch) {
  const cudaStream_t stream = context.stream();
  if (!sums) {
    LaunchSumColumns(stream, space.columns, x,
                     {space.parts, context.counters(space.columns.groups)}, to.sums,
                     /*accumulate=*/false);
    sums = to.sums;
  }
  context.gemm.Multiply(stream, GramProduct(s, context), x, x, space.gram,
                        /*accumulate=*/false, {}, scratch);
  LaunchGramCentre(stream, s, sums, to.sums, space.gram, weights, space.wide);
  context.gemm.Multiply(stream, CovariantProduct(s), space.gram, space.wide, to.covariant,
                        /*accumulate=*/false, {}, scratch);
}

size_t MomentProductBytes(const GramSizes& s, Context& context) {
  return std::max(context.gemm.ScratchBytes(GramProduct(s, context)),
                  context.gemm.ScratchBytes(CovariantProduct(s)));
}

// ---- forward

// What the engine has added to the three outputs (gram_rules.h, masks.h); null: it has not.
const Value* Added(const Call& call, Element element) {
  for (size_t i = 3; i < call.instruction->outputs.size(); ++i) {
    if (call.outputs[i].element == element) return &call.outputs[i];
  }
  return nullptr;
}

struct ForwardSpace {
  ForwardSpace(Pieces& pieces, const Value& y, const GramSizes& s, Element element, bool kept)
      : moments(kept ? nullptr : pieces.TakeFloats(MomentsSize(s.in, s.out))),
        moment_space(pieces, s, element),
        scaled(pieces.Take(s.weights(), element)),
        shift(pieces.Take(size_t(s.out), y.element)),
        columns(s.rows, s.out, y.element),
        norm(pieces.TakeBytes(BatchNormScratch::doubles(columns) * sizeof(double))) {}
  float* moments;
  MomentSpace moment_space;
  Array scaled, shift;
  Columns columns;
  void* norm;
};

MatrixProduct PlainProduct(const Value& y, const GramSizes& s, const Context& context) {
  return {.rows = int64_t(s.rows),
          .depth = s.in,
          .columns = s.out,
          .operands = context.element(),
          .result = y.element};
}
MatrixProduct NormalisedProduct(const Value& y, const GramSizes& s, const Context& context,
                                bool add, bool mask) {
  MatrixProduct product = PlainProduct(y, s, context);
  product.adds = add;
  product.epilogue = !add ? Epilogue::kBias : mask ? Epilogue::kBiasReluMask : Epilogue::kBiasRelu;
  return product;
}

// Then, with `add`, a residual and relu.
void Forward(const Call& call, const Shard& shard, Context& context, bool add) {
  const Instruction& chain = add ? call.instruction->parts[0] : *call.instruction;
  RequireProduct(call, call.attributes());
  const Value &x = call.inputs[0], &y = call.outputs[0];
  const Value* const kept = Added(call, Element::kFloat);
  const Value* const mask = Added(call, Element::kByte);
  const GramSizes s = SizesOf(x, y, shard.count);
  const cudaStream_t stream = context.stream();
  const Array weights = {const_cast<void*>(MatrixOf(call, shard, context)), context.element()};

  Pieces pieces(shard);
  const ForwardSpace space(pieces, y, s, context.element(), kept != nullptr);
  const void* const operand = Converted(x, shard, context, pieces);
  const Moments moments(kept ? kept->floats() : space.moments, s);
  const size_t own = add ? 2 : 1;  // inputs; one more has the sums of x (gram_rules.h)
  const bool given = call.instruction->inputs.size() > own && !IsConverted(x, context);
  const float* const sums = given ? call.inputs[own].floats() : nullptr;
  FindMoments(operand, sums, weights, s, space.moment_space, moments, context, pieces.rest());

  const BatchNormScratch norm(space.columns, static_cast<double*>(space.norm),
                              context.counters(space.columns.groups));
  const BatchNormMeasure measure = {.epsilon = chain.parts[1].attributes.epsilon,
                                    .mean = call.outputs[1].floats(),
                                    .inv_std = call.outputs[2].floats(),
                                    .seen_mean = shard.summand + call.statistic(0),
                                    .seen_variance = shard.summand + call.statistic(1),
                                    .numbers = shard.numbers,
                                    .accumulate = shard.accumulate};
  const bool apart = bool(shard.batch->sum_over_shards);
  LaunchGramMeasure(stream, s, weights, moments.covariant, moments.sums, norm.sums, measure, apart);
  if (apart) {
    const double* const all = context.SumOverShards(*shard.batch, norm.sums, norm.others,
                                                    BatchNormScratch::length(space.columns) + 1);
    LaunchBatchNormMeasure(stream, s.out, all, measure);
  }

  const float *const weight = shard.state + call.parameter(1), *const bias =
                                                                   shard.state + call.parameter(2);
  const MatrixProduct product = NormalisedProduct(y, s, context, add, mask != nullptr);
  if (context.gemm.Can(product)) {
    LaunchGramScale(stream, s,
                    {.weights = weights,
                     .sums = moments.sums,
                     .mean = measure.mean,
                     .inv_std = measure.inv_std,
                     .weight = weight,
                     .bias = bias,
                     .scaled = space.scaled,
                     .shift = space.shift});
    context.gemm.Multiply(stream, product, operand, space.scaled.data, y.data,
                          /*accumulate=*/false,
                          {.bias = space.shift.data,
                           .added = add ? call.inputs[1].data : nullptr,
                           .mask = mask ? mask->bytes() : nullptr},
                          pieces.rest());
    return;
  }
  context.gemm.Multiply(stream, PlainProduct(y, s, context), operand, weights.data, y.data,
                        /*accumulate=*/false, {}, pieces.rest());
  LaunchBatchNormApply(stream, space.columns,
                       {.x = y.data,
                        .mean = measure.mean,
                        .inv_std = measure.inv_std,
                        .variance = nullptr,
                        .epsilon = 0,
                        .weight = weight,
                        .bias = bias,
                        .residual = add ? call.inputs[1].data : nullptr,
                        .y = y.data,
                        .relu = add,
                        .mask = mask ? mask->bytes() : nullptr});
}

size_t ForwardBytes(const Call& call, size_t samples, Context& context, bool add) {
  const Value &x = call.inputs[0], &y = call.outputs[0];
  const GramSizes s = SizesOf(x, y, samples);
  Pieces pieces;
  ForwardSpace(pieces, y, s, context.element(), Added(call, Element::kFloat) != nullptr);
  const MatrixProduct product =
      NormalisedProduct(y, s, context, add, Added(call, Element::kByte) != nullptr);
  const size_t rest =
      context.gemm.ScratchBytes(context.gemm.Can(product) ? product : PlainProduct(y, s, context));
  return pieces.taken() + ConvertedBytes(x, samples, context) +
         std::max(rest, MomentProductBytes(s, context));
}

// ---- backward

// The inputs of both operations.
struct Inputs {
  const Value &x, &mean, &inv_std, &dy, &dx;
  const Value* moments;  // null: forward has kept none
};
Inputs InputsOf(const Call& call) {
  const auto kept = [&](size_t i) {
    return call.instruction->inputs.size() > i ? &call.inputs[i] : nullptr;
  };
  return {call.inputs[0], call.inputs[1], call.inputs[2], call.inputs[3], call.outputs[0], kept(4)};
}
Inputs SummedInputsOf(const Call& call) {
  const Value* const moments = call.instruction->inputs.size() > 6 ? &call.inputs[6] : nullptr;
  return {call.inputs[3],  call.inputs[4],  call.inputs[5],
          call.outputs[1], call.outputs[0], moments};
}

struct BackwardSpace {
  BackwardSpace(Pieces& pieces, const Inputs& in, const GramSizes& s, Element element, bool eight)
      : columns(s.rows, s.out, in.dy.element, eight),
        norm(pieces.TakeBytes(BatchNormScratch::doubles(columns) * sizeof(double))),
        moments(in.moments ? nullptr : pieces.TakeFloats(MomentsSize(s.in, s.out))),
        products(pieces.TakeFloats(s.weights())),
        off(pieces.TakeFloats(size_t(s.out))),
        scaled(pieces.Take(s.weights(), element)),
        slopes(pieces.Take(s.weights(), element)),
        bend(pieces.TakeFloats(size_t(s.in) * size_t(s.in))),
        bent(pieces.Take(size_t(s.in) * size_t(s.in), element)),
        centre(pieces.Take(size_t(s.in), in.dx.element)),
        shift(pieces.Take(size_t(s.in), in.dx.element)),
        wide_centre(pieces.TakeFloats(size_t(s.in))),
        wide_shift(pieces.TakeFloats(size_t(s.in))) {}
  Columns columns;
  void* norm;
  float *moments, *products, *off;
  Array scaled, slopes;
  float* bend;
  Array bent, centre, shift;
  float *wide_centre, *wide_shift;
};

MatrixProduct WeightsProduct(const GramSizes& s, const Context& context) {
  return {.rows = s.in,
          .depth = int64_t(s.rows),
          .columns = s.out,
          .a_transposed = true,
          .operands = context.element()};
}
MatrixProduct BendProduct(const GramSizes& s, const Context& context) {
  return {.rows = s.in,
          .depth = s.out,
          .columns = s.in,
          .b_transposed = true,
          .operands = context.element()};
}
// dx [+]= operand [rows][depth] matrix^T + bias, with the bias if there is such an epilogue.
MatrixProduct InputProduct(const Value& dx, int64_t depth, const GramSizes& s, Context& context) {
  MatrixProduct product = {.rows = int64_t(s.rows),
                           .depth = depth,
                           .columns = s.in,
                           .b_transposed = true,
                           .operands = context.element(),
                           .result = dx.element,
                           .epilogue = Epilogue::kBias};
  if (!context.gemm.Can(product)) product.epilogue = Epilogue::kNone;
  return product;
}

// With `summed` dy is found on the way.
void Backward(const Call& call, const Shard& shard, Context& context, const Inputs& in,
              const BatchNormSummed* summed) {
  const GramSizes s = SizesOf(in.x, in.dy, shard.count);
  const cudaStream_t stream = context.stream();
  const Array weights = {const_cast<void*>(MatrixOf(call, shard, context)), context.element()};

  Pieces pieces(shard);
  const BackwardSpace space(pieces, in, s, context.element(), summed && summed->mask);
  const BatchNormScratch scratch(space.columns, static_cast<double*>(space.norm),
                                 context.counters(space.columns.groups));
  if (summed) {
    LaunchGramGradColumns(stream, space.columns, *summed, scratch);
  } else {
    LaunchGramGradColumns(stream, space.columns, in.dy.data, scratch);
  }
  const void* const x = Converted(in.x, shard, context, pieces);
  const void* const dy = Converted(in.dy, shard, context, pieces);
  const Moments moments(in.moments ? in.moments->floats() : space.moments, s);
  if (!in.moments) {
    const MomentSpace moment_space(pieces, s, context.element());
    FindMoments(x, nullptr, weights, s, moment_space, moments, context, pieces.rest());
  }
  const auto multiply = [&](const MatrixProduct& product, const void* a, const void* b, float* c) {
    context.gemm.Multiply(stream, product, a, b, c, /*accumulate=*/false, {}, pieces.rest());
  };
  multiply(WeightsProduct(s, context), x, dy, space.products);

  const BatchNormGrad norm = {.x = nullptr,
                              .dy = nullptr,
                              .mean = in.mean.floats(),
                              .inv_std = in.inv_std.floats(),
                              .weight = shard.state + call.parameter(1),
                              .bias = shard.state + call.parameter(2),
                              .dx = nullptr,
                              .d_weight = shard.summand + call.parameter(1),
                              .d_bias = shard.summand + call.parameter(2),
                              .accumulate = shard.accumulate,
                              .relu = false};
  const GramGrad gram = {.weights = weights,
                         .sums = moments.sums,
                         .covariant = moments.covariant,
                         .products = space.products,
                         .off = space.off,
                         .d_weights = shard.summand + call.parameter(0),
                         .scaled = space.scaled,
                         .slopes = space.slopes,
                         .bend = space.bend,
                         .bent = space.bent,
                         .centre = space.centre,
                         .shift = space.shift,
                         .wide_centre = space.wide_centre,
                         .wide_shift = space.wide_shift};
  const bool apart = bool(shard.batch->sum_over_shards);
  LaunchGramGradSums(stream, s, gram, norm, scratch, apart);
  if (apart) {
    const double* const all = context.SumOverShards(*shard.batch, scratch.sums, scratch.others,
                                                    BatchNormScratch::length(space.columns) + 1);
    LaunchBatchNormGradFactors(stream, space.columns, norm, scratch, all);
  }
  LaunchGramGradWeights(stream, s, gram, norm, scratch);
  multiply(BendProduct(s, context), space.slopes.data, weights.data, space.bend);
  LaunchGramGradShift(stream, s, gram, norm, scratch);

  const auto add_to_dx = [&](int depth, const void* operand, Array matrix, Array bias,
                             const float* wide_bias, bool accumulate) {
    const MatrixProduct product = InputProduct(in.dx, depth, s, context);
    const bool with_bias = product.epilogue == Epilogue::kBias;
    context.gemm.Multiply(stream, product, operand, matrix.data, in.dx.data, accumulate,
                          {.bias = with_bias ? bias.data : nullptr}, pieces.rest());
    if (with_bias) return;
    LaunchBiasActivation(stream, Activation::kNone, wide_bias, in.dx.array(), s.rows, s.in);
  };
  add_to_dx(s.in, x, space.bent, space.centre, space.wide_centre, /*accumulate=*/false);
  add_to_dx(s.out, dy, space.scaled, space.shift, space.wide_shift, /*accumulate=*/true);
}

size_t BackwardBytes(const Inputs& in, size_t samples, Context& context) {
  const GramSizes s = SizesOf(in.x, in.dy, samples);
  const auto taken = [&](bool eight) {
    Pieces pieces;
    BackwardSpace(pieces, in, s, context.element(), eight);
    if (!in.moments) MomentSpace(pieces, s, context.element());
    return pieces.taken();
  };
  size_t rest = in.moments ? 0 : MomentProductBytes(s, context);
  for (const MatrixProduct& product :
       {WeightsProduct(s, context), BendProduct(s, context), InputProduct(in.dx, s.in, s, context),
        InputProduct(in.dx, s.out, s, context)}) {
    rest = std::max(rest, context.gemm.ScratchBytes(product));
  }
  return std::max(taken(false), taken(true)) + ConvertedBytes(in.x, samples, context) +
         ConvertedBytes(in.dy, samples, context) + rest;
}

}  // namespace

void Conv2dBatchNorm(const Call& call, const Shard& shard, Context& context) {
  Forward(call, shard, context, /*add=*/false);
}
size_t Conv2dBatchNormScratchBytes(const Call& call, size_t samples, Context& context) {
  return ForwardBytes(call, samples, context, /*add=*/false);
}
void Conv2dBatchNormAddRelu(const Call& call, const Shard& shard, Context& context) {
  Forward(call, shard, context, /*add=*/true);
}
size_t Conv2dBatchNormAddReluScratchBytes(const Call& call, size_t samples, Context& context) {
  return ForwardBytes(call, samples, context, /*add=*/true);
}

void Conv2dBatchNormGrad(const Call& call, const Shard& shard, Context& context) {
  RequireProduct(call, call.attributes());
  Backward(call, shard, context, InputsOf(call), nullptr);
}
size_t Conv2dBatchNormGradScratchBytes(const Call& call, size_t samples, Context& context) {
  return BackwardBytes(InputsOf(call), samples, context);
}
void AddReluConv2dBatchNormGrad(const Call& call, const Shard& shard, Context& context) {
  RequireProduct(call, call.instruction->parts.back().attributes);
  const Value& y = call.inputs[kSigns];
  const bool masked = y.element == Element::kByte;
  const BatchNormSummed summed = {.a = call.inputs[0].data,
                                  .b = call.inputs[1].data,
                                  .y = masked ? nullptr : y.data,
                                  .mask = masked ? y.bytes() : nullptr,
                                  .sum = call.outputs[1].data};
  Backward(call, shard, context, SummedInputsOf(call), &summed);
}
size_t AddReluConv2dBatchNormGradScratchBytes(const Call& call, size_t samples, Context& context) {
  return BackwardBytes(SummedInputsOf(call), samples, context);
}

}  // namespace trireme::cuda
