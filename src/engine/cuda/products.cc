// dense and conv2d: products by cuBLASLt, a convolution of more than one pixel by cuDNN. Their
// operands are held as the precision says: what is not is converted first.
#include <algorithm>

#include "engine/cuda/activations.h"
#include "engine/cuda/columns.h"
#include "engine/cuda/fold.h"
#include "engine/cuda/gram_rules.h"
#include "engine/cuda/kernels.h"
#include "engine/cuda/node_choice.h"
#include "engine/cuda/pieces.h"
#include "engine/cuda/weights.h"
#include "graph/op.h"

namespace trireme::cuda {
namespace {

// ---- products

MatrixProduct GradInputProduct(const Call& call, size_t samples, const Context& context) {
  const Value &dy = call.inputs[0], &dx = call.outputs[0];
  return {.rows = int64_t(samples * dy.pixels()),
          .depth = dy.shape.channels,
          .columns = dx.shape.channels,
          .b_transposed = true,
          .operands = context.element(),
          .result = dx.element};
}
MatrixProduct GradWeightsProduct(const Call& call, size_t samples, const Context& context) {
  const Value &x = call.inputs[0], &dy = call.inputs[1];
  return {.rows = x.shape.channels,
          .depth = int64_t(samples * dy.pixels()),
          .columns = dy.shape.channels,
          .a_transposed = true,
          .operands = context.element()};
}

// y = f(y + bias).
void Finish(Activation f, const float* bias, const Call& call, const Shard& shard,
            Context& context) {
  if (!bias && f == Activation::kNone) return;
  const Value& y = call.outputs[0];
  LaunchBiasActivation(context.stream(), f, bias, y.array(), shard.count * y.pixels(),
                       y.shape.channels);
}

const float* BiasOf(const Call& call, const Shard& shard) {
  return call.attributes().bias ? shard.state + call.parameter(1) : nullptr;
}

bool HasBias(Epilogue e) { return e == Epilogue::kBias || e == Epilogue::kBiasRelu; }
bool HasRelu(Epilogue e) { return e == Epilogue::kRelu || e == Epilogue::kBiasRelu; }

// With as much of the bias and f as cuBLASLt does by itself: not with a bias in float32 beside
// results in 16 bits.
MatrixProduct ForwardProduct(Activation f, const Call& call, size_t samples, Context& context) {
  const Value &x = call.inputs[0], &y = call.outputs[0];
  MatrixProduct product = {.rows = int64_t(samples * y.pixels()),
                           .depth = x.shape.channels,
                           .columns = y.shape.channels,
                           .operands = context.element(),
                           .result = y.element};
  if (IsNarrow(product.result)) return product;
  const bool relu = f == Activation::kRelu;
  product.epilogue = call.attributes().bias ? (relu ? Epilogue::kBiasRelu : Epilogue::kBias)
                                            : (relu ? Epilogue::kRelu : Epilogue::kNone);
  if (!context.gemm.Can(product)) product.epilogue = Epilogue::kNone;
  return product;
}

void Multiply(Activation f, const Call& call, const Shard& shard, Context& context) {
  Pieces pieces(shard);
  const MatrixProduct product = ForwardProduct(f, call, shard.count, context);
  const void* const x = Converted(call.inputs[0], shard, context, pieces);
  const float* const bias = BiasOf(call, shard);
  const bool with_bias = HasBias(product.epilogue);
  context.gemm.Multiply(context.stream(), product, x, MatrixOf(call, shard, context),
                        call.outputs[0].data, /*accumulate=*/false,
                        {.bias = with_bias ? bias : nullptr}, pieces.rest());
  Finish(HasRelu(product.epilogue) ? Activation::kNone : f, with_bias ? nullptr : bias, call, shard,
         context);
}
size_t MultiplyBytes(Activation f, const Call& call, size_t samples, Context& context) {
  return ConvertedBytes(call.inputs[0], samples, context) +
         context.gemm.ScratchBytes(ForwardProduct(f, call, samples, context));
}

void MultiplyGradInput(const Call& call, const Shard& shard, Context& context) {
  Pieces pieces(shard);
  const void* const dy = Converted(call.inputs[0], shard, context, pieces);
  context.gemm.Multiply(context.stream(), GradInputProduct(call, shard.count, context), dy,
                        MatrixOf(call, shard, context), call.outputs[0].data, /*accumulate=*/false,
                        {}, pieces.rest());
}

size_t MultiplyGradInputBytes(const Call& call, size_t samples, Context& context) {
  return ConvertedBytes(call.inputs[0], samples, context) +
         context.gemm.ScratchBytes(GradInputProduct(call, samples, context));
}

void MultiplyGradWeights(const Call& call, const Shard& shard, Context& context) {
  Pieces pieces(shard);
  const void* const x = Converted(call.inputs[0], shard, context, pieces);
  const void* const dy = Converted(call.inputs[1], shard, context, pieces);
  context.gemm.Multiply(context.stream(), GradWeightsProduct(call, shard.count, context), x, dy,
                        shard.summand + call.parameter(0), shard.accumulate, {}, pieces.rest());
}

size_t MultiplyGradWeightsBytes(const Call& call, size_t samples, Context& context) {
  return ConvertedBytes(call.inputs[0], samples, context) +
         ConvertedBytes(call.inputs[1], samples, context) +
         context.gemm.ScratchBytes(GradWeightsProduct(call, samples, context));
}

// ---- gradients of biases

Columns ColumnsOf(const Value& dy, size_t samples) {
  return Columns(samples * dy.pixels(), dy.shape.channels, dy.element);
}

void BiasGrad(const Call& call, const Shard& shard, Context& context) {
  if (!call.attributes().bias) return;
  const Columns columns = ColumnsOf(call.inputs[1], shard.count);
  LaunchSumColumns(context.stream(), columns, call.inputs[1].data,
                   {reinterpret_cast<float*>(shard.scratch), context.counters(columns.groups)},
                   shard.summand + call.parameter(1), shard.accumulate);
}

size_t BiasGradBytes(const Call& call, size_t samples) {
  return call.attributes().bias ? ColumnsOf(call.inputs[1], samples).parts() * sizeof(float) : 0;
}

// ---- convolutions

// How a convolution is folded, if it is. Only tensor cores gain by it.
std::optional<Fold> FoldFor(const Attributes& a, const Shape& image, const Shape& result,
                            Precision precision) {
  if (precision == Precision::kF32) return std::nullopt;
  return FoldOf(WindowOf(a, image, result), a.choice == kInCells);
}

ConvShape ShapeOf(ConvKind kind, const Call& call, const Value& image, const Value& result,
                  size_t samples) {
  return {kind, int(samples), WindowOf(call.attributes(), image.shape, result.shape),
          result.shape.channels};
}

ConvShape Folded(const ConvShape& shape, const Fold& fold) {
  return {shape.kind, shape.samples, fold.folded(), fold.out(shape.out)};
}

// Of the results of a convolution, which may have to be converted afterwards.
class Results {
 public:
  Results(const Value& value, const Shard& shard, const Context& context, Pieces& pieces)
      : value_(value), size_(shard.count * value.size()), made_(value.array()) {
    if (IsConverted(value, context)) made_ = pieces.Take(size_, context.element());
  }
  void* data() const { return made_.data; }
  void Convert(Context& context) const {
    if (made_.data == value_.data) return;
    LaunchConvert(context.stream(), made_, value_.array(), size_);
  }

 private:
  const Value& value_;
  const size_t size_;
  Array made_;
};

// x in the library's order and type: folded, converted, or as it lies there. `kept` has the place
// of folded images that stay (cells.h); or is null.
const void* Images(const Value& x, const std::optional<Fold>& fold, const Value* kept,
                   const Shard& shard, Context& context, Pieces& pieces) {
  if (!fold) return Converted(x, shard, context, pieces);
  const Array folded =
      kept ? kept->array() : pieces.Take(shard.count * fold->image(), context.element());
  LaunchFoldImages(context.stream(), *fold, shard.count, x.array(), folded);
  return folded.data;
}
size_t ImagesBytes(const Value& x, const std::optional<Fold>& fold, bool kept, size_t samples,
                   const Context& context) {
  if (!fold) return ConvertedBytes(x, samples, context);
  return kept ? 0 : Aligned(samples * fold->image() * NumberBytes(context.element()));
}

bool KeepsImages(const Call& call) { return call.instruction->outputs.size() > 1; }
bool HasKeptImages(const Call& call) { return call.instruction->inputs.size() > 2; }

void Conv2dForward(Activation f, const Call& call, const Shard& shard, Context& context) {
  if (IsProduct(call.attributes())) return Multiply(f, call, shard, context);
  const Value &x = call.inputs[0], &y = call.outputs[0];
  const auto fold = FoldFor(call.attributes(), x.shape, y.shape, context.precision);
  ConvShape shape = ShapeOf(ConvKind::kForward, call, x, y, shard.count);
  Pieces pieces(shard);
  const Value* const kept = KeepsImages(call) ? &call.outputs[1] : nullptr;
  const void* const images = Images(x, fold, kept, shard, context, pieces);
  const void* weights = nullptr;
  if (fold) {
    const Array folded = pieces.Take(fold->weights(shape.out), context.element());
    LaunchFoldWeights(context.stream(), *fold, shape.out, shard.state + call.parameter(0), folded);
    weights = folded.data;
    shape = Folded(shape, *fold);
  } else {
    weights = CopyOf(call, shard);
  }
  const Results results(y, shard, context, pieces);
  context.conv.Run(shape, images, weights, results.data(), pieces.rest(), pieces.rest_bytes());
  results.Convert(context);
  Finish(f, BiasOf(call, shard), call, shard, context);
}
size_t Conv2dForwardBytes(Activation f, const Call& call, size_t samples, Context& context) {
  if (IsProduct(call.attributes())) return MultiplyBytes(f, call, samples, context);
  const Value &x = call.inputs[0], &y = call.outputs[0];
  const auto fold = FoldFor(call.attributes(), x.shape, y.shape, context.precision);
  ConvShape shape = ShapeOf(ConvKind::kForward, call, x, y, samples);
  size_t bytes = ImagesBytes(x, fold, KeepsImages(call), samples, context) +
                 ConvertedBytes(y, samples, context);
  if (fold) {
    bytes += Aligned(fold->weights(shape.out) * NumberBytes(context.element()));
    shape = Folded(shape, *fold);
  }
  return bytes + context.conv.ScratchBytes(shape);
}

}  // namespace

WeightCopy WeightCopyOf(const Instruction& i, Precision precision) {
  const std::string_view op = i.op->name;
  const bool forward = op == "dense" || op == "dense_relu" || op == "dense_sigmoid" ||
                       op == "dense_tanh" || op == "conv2d" || op == "conv2d_relu";
  const bool backward = op == "dense_grad_input" || op == "conv2d_grad_input";
  if (op == "conv2d_grad_weights") {
    const bool folds =
        FoldFor(i.attributes, i.inputs[0].spec.shape, i.inputs[1].spec.shape, precision)
            .has_value();
    return IsProduct(i.attributes) || folds ? WeightCopy::kNone : WeightCopy::kTurnedGradient;
  }
  if (!forward && !backward && !IsGramOp(op)) return WeightCopy::kNone;
  if (IsProduct(i.attributes)) {
    return IsNarrow(OperandsIn(precision)) ? WeightCopy::kNarrow : WeightCopy::kNone;
  }
  const bool folds =
      forward && FoldFor(i.attributes, i.inputs[0].spec.shape, i.outputs[0].spec.shape, precision);
  return folds ? WeightCopy::kNone : WeightCopy::kTurned;
}

// Each activation has a name of its own in the table.
#define TRIREME_DENSE(name, f)                                                    \
  void name(const Call& call, const Shard& shard, Context& context) {             \
    Multiply(f, call, shard, context);                                            \
  }                                                                               \
  size_t name##ScratchBytes(const Call& call, size_t samples, Context& context) { \
    return MultiplyBytes(f, call, samples, context);                              \
  }
TRIREME_DENSE(Dense, Activation::kNone)
TRIREME_DENSE(DenseRelu, Activation::kRelu)
TRIREME_DENSE(DenseSigmoid, Activation::kSigmoid)
TRIREME_DENSE(DenseTanh, Activation::kTanh)
#undef TRIREME_DENSE

void DenseGradInput(const Call& call, const Shard& shard, Context& context) {
  MultiplyGradInput(call, shard, context);
}
size_t DenseGradInputScratchBytes(const Call& call, size_t samples, Context& context) {
  return MultiplyGradInputBytes(call, samples, context);
}

void DenseGradWeights(const Call& call, const Shard& shard, Context& context) {
  MultiplyGradWeights(call, shard, context);
  BiasGrad(call, shard, context);
}
size_t DenseGradWeightsScratchBytes(const Call& call, size_t samples, Context& context) {
  return std::max(MultiplyGradWeightsBytes(call, samples, context), BiasGradBytes(call, samples));
}

void Conv2d(const Call& call, const Shard& shard, Context& context) {
  Conv2dForward(Activation::kNone, call, shard, context);
}
size_t Conv2dScratchBytes(const Call& call, size_t samples, Context& context) {
  return Conv2dForwardBytes(Activation::kNone, call, samples, context);
}
void Conv2dRelu(const Call& call, const Shard& shard, Context& context) {
  Conv2dForward(Activation::kRelu, call, shard, context);
}
size_t Conv2dReluScratchBytes(const Call& call, size_t samples, Context& context) {
  return Conv2dForwardBytes(Activation::kRelu, call, samples, context);
}

void Conv2dGradInput(const Call& call, const Shard& shard, Context& context) {
  if (IsProduct(call.attributes())) return MultiplyGradInput(call, shard, context);
  const Value &dy = call.inputs[0], &dx = call.outputs[0];
  Pieces pieces(shard);
  const void* const results = Converted(dy, shard, context, pieces);
  const Results images(dx, shard, context, pieces);
  context.conv.Run(ShapeOf(ConvKind::kGradInput, call, dx, dy, shard.count), results,
                   CopyOf(call, shard), images.data(), pieces.rest(), pieces.rest_bytes());
  images.Convert(context);
}
size_t Conv2dGradInputScratchBytes(const Call& call, size_t samples, Context& context) {
  if (IsProduct(call.attributes())) return MultiplyGradInputBytes(call, samples, context);
  const Value &dy = call.inputs[0], &dx = call.outputs[0];
  return ConvertedBytes(dy, samples, context) + ConvertedBytes(dx, samples, context) +
         context.conv.ScratchBytes(ShapeOf(ConvKind::kGradInput, call, dx, dy, samples));
}

// cuDNN's gradient comes in the order of the copies: one pass over those of many layers turns them
// and puts them into the summand (CallList::Run).
void Conv2dGradWeights(const Call& call, const Shard& shard, Context& context) {
  if (IsProduct(call.attributes())) return DenseGradWeights(call, shard, context);
  const Value &x = call.inputs[0], &dy = call.inputs[1];
  const auto fold = FoldFor(call.attributes(), x.shape, dy.shape, context.precision);
  ConvShape shape = ShapeOf(ConvKind::kGradWeights, call, x, dy, shard.count);
  if (fold) shape = Folded(shape, *fold);
  const Window& w = shape.window;
  const int taps = w.kernel * w.kernel * w.channels;
  Pieces pieces(shard);
  const Array gradient = fold ? pieces.Take(size_t(shape.out) * size_t(taps), context.element())
                              : Array{const_cast<void*>(CopyOf(call, shard)), context.element()};
  const void* const images =
      HasKeptImages(call) ? call.inputs[2].data : Images(x, fold, nullptr, shard, context, pieces);
  const void* const results = Converted(dy, shard, context, pieces);
  context.conv.Run(shape, images, results, gradient.data, pieces.rest(), pieces.rest_bytes());
  if (fold) {
    LaunchUnfoldGradient(context.stream(), *fold, dy.shape.channels, gradient,
                         shard.summand + call.parameter(0), shard.accumulate);
  }
  BiasGrad(call, shard, context);
}
size_t Conv2dGradWeightsScratchBytes(const Call& call, size_t samples, Context& context) {
  if (IsProduct(call.attributes())) return DenseGradWeightsScratchBytes(call, samples, context);
  const Value &x = call.inputs[0], &dy = call.inputs[1];
  const auto fold = FoldFor(call.attributes(), x.shape, dy.shape, context.precision);
  ConvShape shape = ShapeOf(ConvKind::kGradWeights, call, x, dy, samples);
  if (fold) shape = Folded(shape, *fold);
  const Window& w = shape.window;
  const size_t weights = size_t(shape.out) * size_t(w.kernel * w.kernel * w.channels);
  const size_t bytes = (fold ? Aligned(weights * NumberBytes(context.element())) : 0) +
                       ImagesBytes(x, fold, HasKeptImages(call), samples, context) +
                       ConvertedBytes(dy, samples, context) + context.conv.ScratchBytes(shape);
  return std::max(bytes, BiasGradBytes(call, samples));
}

}  // namespace trireme::cuda
