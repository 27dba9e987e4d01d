// dense and conv2d: products by cuBLASLt, a convolution of more than one pixel by cuDNN.
#include <algorithm>

#include "engine/cuda/activations.h"
#include "engine/cuda/kernels.h"
#include "engine/cuda/rows.h"
#include "engine/cuda/weights.h"
#include "graph/op.h"

namespace trireme::cuda {
namespace {

// A dense layer, or a convolution that looks at one pixel for each of its results: a product of a
// matrix with a row for each pixel and the weights [in][out].
bool IsProduct(const Attributes& a) { return a.kernel == 1 && a.stride == 1 && a.padding == 0; }

constexpr size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

struct Sizes {
  Sizes(const Value& input, const Value& output, size_t samples)
      : rows(int64_t(samples * output.pixels())),
        in(input.shape.channels),
        out(output.shape.channels) {}
  int64_t rows, in, out;
};

void Multiply(const Call& call, const Shard& shard, Context& context) {
  const Sizes s(call.inputs[0], call.outputs[0], shard.count);
  context.gemm.Multiply(context.stream(), {.rows = s.rows, .depth = s.in, .columns = s.out},
                        call.inputs[0].floats(), shard.state + call.parameter(0),
                        call.outputs[0].floats(), /*accumulate=*/false, shard.scratch);
}

void MultiplyGradInput(const Call& call, const Shard& shard, Context& context) {
  const Sizes s(call.outputs[0], call.inputs[0], shard.count);
  context.gemm.Multiply(
      context.stream(), {.rows = s.rows, .depth = s.out, .columns = s.in, .b_transposed = true},
      call.inputs[0].floats(), shard.state + call.parameter(0), call.outputs[0].floats(),
      /*accumulate=*/false, shard.scratch);
}

void MultiplyGradWeights(const Call& call, const Shard& shard, Context& context) {
  const Sizes s(call.inputs[0], call.inputs[1], shard.count);
  context.gemm.Multiply(context.stream(),
                        {.rows = s.in, .depth = s.rows, .columns = s.out, .a_transposed = true},
                        call.inputs[0].floats(), call.inputs[1].floats(),
                        shard.summand + call.parameter(0), shard.accumulate, shard.scratch);
}

// y = f(y + bias).
void Finish(Activation f, const Call& call, const Shard& shard, Context& context) {
  const bool bias = call.attributes().bias;
  if (!bias && f == Activation::kNone) return;
  const Value& y = call.outputs[0];
  LaunchBiasActivation(context.stream(), f, bias ? shard.state + call.parameter(1) : nullptr,
                       y.floats(), shard.count * y.pixels(), y.shape.channels);
}

Rows RowsOf(const Value& dy, size_t samples) {
  return Rows(samples * dy.pixels(), dy.shape.channels);
}

void BiasGrad(const Call& call, const Shard& shard, Context& context) {
  if (!call.attributes().bias) return;
  LaunchSumRows(context.stream(), RowsOf(call.inputs[1], shard.count), call.inputs[1].floats(),
                reinterpret_cast<double*>(shard.scratch), shard.summand + call.parameter(1),
                shard.accumulate);
}

size_t BiasGradBytes(const Call& call, size_t samples) {
  return SumRowsDoubles(RowsOf(call.inputs[1], samples)) * sizeof(double);
}

ConvShape ShapeOf(ConvKind kind, const Call& call, const Value& image, const Value& result,
                  size_t samples) {
  return {kind, int(samples), WindowOf(call.attributes(), image.shape, result.shape),
          result.shape.channels};
}
ConvShape ForwardShape(const Call& call, size_t samples) {
  return ShapeOf(ConvKind::kForward, call, call.inputs[0], call.outputs[0], samples);
}
ConvShape GradInputShape(const Call& call, size_t samples) {
  return ShapeOf(ConvKind::kGradInput, call, call.outputs[0], call.inputs[0], samples);
}
ConvShape GradWeightsShape(const Call& call, size_t samples) {
  return ShapeOf(ConvKind::kGradWeights, call, call.inputs[0], call.inputs[1], samples);
}

size_t WeightBytes(const Call& call) {
  return Aligned(call.instruction->parameters[0].size * sizeof(float));
}

void DenseForward(Activation f, const Call& call, const Shard& shard, Context& context) {
  Multiply(call, shard, context);
  Finish(f, call, shard, context);
}

void Conv2dForward(Activation f, const Call& call, const Shard& shard, Context& context) {
  if (IsProduct(call.attributes())) return DenseForward(f, call, shard, context);
  context.conv.Run(ForwardShape(call, shard.count), call.inputs[0].floats(),
                   shard.copies + call.copy, call.outputs[0].floats(), shard.scratch,
                   shard.scratch_bytes);
  Finish(f, call, shard, context);
}

}  // namespace

bool ReadsCopy(const Instruction& instruction) {
  const std::string_view op = instruction.op->name;
  return (op == "conv2d" || op == "conv2d_relu" || op == "conv2d_grad_input") &&
         !IsProduct(instruction.attributes);
}

void Dense(const Call& call, const Shard& shard, Context& context) {
  DenseForward(Activation::kNone, call, shard, context);
}
void DenseRelu(const Call& call, const Shard& shard, Context& context) {
  DenseForward(Activation::kRelu, call, shard, context);
}
void DenseSigmoid(const Call& call, const Shard& shard, Context& context) {
  DenseForward(Activation::kSigmoid, call, shard, context);
}
void DenseTanh(const Call& call, const Shard& shard, Context& context) {
  DenseForward(Activation::kTanh, call, shard, context);
}
void DenseGradInput(const Call& call, const Shard& shard, Context& context) {
  MultiplyGradInput(call, shard, context);
}
size_t DenseScratchBytes(const Call&, size_t, Context&) { return Gemm::kScratchBytes; }

void DenseGradWeights(const Call& call, const Shard& shard, Context& context) {
  MultiplyGradWeights(call, shard, context);
  BiasGrad(call, shard, context);
}
size_t DenseGradWeightsScratchBytes(const Call& call, size_t samples, Context&) {
  return std::max(Gemm::kScratchBytes, BiasGradBytes(call, samples));
}

void Conv2d(const Call& call, const Shard& shard, Context& context) {
  Conv2dForward(Activation::kNone, call, shard, context);
}
void Conv2dRelu(const Call& call, const Shard& shard, Context& context) {
  Conv2dForward(Activation::kRelu, call, shard, context);
}
size_t Conv2dScratchBytes(const Call& call, size_t samples, Context& context) {
  if (IsProduct(call.attributes())) return Gemm::kScratchBytes;
  return context.conv.ScratchBytes(ForwardShape(call, samples));
}

void Conv2dGradInput(const Call& call, const Shard& shard, Context& context) {
  if (IsProduct(call.attributes())) return MultiplyGradInput(call, shard, context);
  context.conv.Run(GradInputShape(call, shard.count), call.inputs[0].floats(),
                   shard.copies + call.copy, call.outputs[0].floats(), shard.scratch,
                   shard.scratch_bytes);
}
size_t Conv2dGradInputScratchBytes(const Call& call, size_t samples, Context& context) {
  if (IsProduct(call.attributes())) return Gemm::kScratchBytes;
  return context.conv.ScratchBytes(GradInputShape(call, samples));
}

// cuDNN's gradient comes in the order of the copies: one pass turns it and puts it into the
// summand.
void Conv2dGradWeights(const Call& call, const Shard& shard, Context& context) {
  if (IsProduct(call.attributes())) {
    MultiplyGradWeights(call, shard, context);
  } else {
    const ConvShape shape = GradWeightsShape(call, shard.count);
    const size_t own = WeightBytes(call);
    float* const gradient = reinterpret_cast<float*>(shard.scratch);
    context.conv.Run(shape, call.inputs[0].floats(), call.inputs[1].floats(), gradient,
                     shard.scratch + own, shard.scratch_bytes - own);
    const int taps = shape.window.kernel * shape.window.kernel * shape.window.channels;
    LaunchTransposeInto(context.stream(), gradient, shape.out, taps,
                        shard.summand + call.parameter(0), shard.accumulate);
  }
  BiasGrad(call, shard, context);
}
size_t Conv2dGradWeightsScratchBytes(const Call& call, size_t samples, Context& context) {
  const size_t product =
      IsProduct(call.attributes())
          ? Gemm::kScratchBytes
          : WeightBytes(call) + context.conv.ScratchBytes(GradWeightsShape(call, samples));
  return std::max(product, BiasGradBytes(call, samples));
}

}  // namespace trireme::cuda
