// The table of all kernels: one row per operation.
#include "engine/cuda/kernels.h"

#include <algorithm>

#include "engine/cuda/masks.h"
#include "engine/cuda/node_choice.h"
#include "graph/op.h"

// A row per operation: its name, its kernel, for SCRATCH how much memory beside it takes, and which
// operands it takes in 16 bits. Dropout and stochastic depth have gradients with the same mask.
#define TRIREME_CUDA_KERNELS(PLAIN, SCRATCH)                                                       \
  PLAIN("absolute_error", AbsoluteError)                                                           \
  PLAIN("absolute_error_grad", AbsoluteErrorGrad)                                                  \
  PLAIN("add", Add, kPair)                                                                         \
  SCRATCH("add_relu_batch_norm_grad", AddReluBatchNormGrad, AddReluBatchNormGradScratchBytes,      \
          {0b1111, 0b11})                                                                          \
  SCRATCH("add_relu_conv2d_batch_norm_grad", AddReluConv2dBatchNormGrad,                           \
          AddReluConv2dBatchNormGradScratchBytes, {0b1111, 0b11})                                  \
  PLAIN("add_relu_grad", AddReluGrad, {0b111, 0b1})                                                \
  PLAIN("attention", Attend, kOne)                                                                 \
  SCRATCH("attention_grad", AttendGrad, AttendGradScratchBytes, {0b1011, 0b1})                     \
  PLAIN("average_pool", AveragePool, kOne)                                                         \
  PLAIN("average_pool_grad", AveragePoolGrad, kOne)                                                \
  SCRATCH("batch_norm", BatchNorm, BatchNormScratchBytes, kOne)                                    \
  SCRATCH("batch_norm_add", BatchNormAdd, BatchNormScratchBytes, kPair)                            \
  SCRATCH("batch_norm_add_relu", BatchNormAddRelu, BatchNormScratchBytes, kPair)                   \
  SCRATCH("batch_norm_grad", BatchNormGradient, BatchNormScratchBytes, {0b1001, 0b1})              \
  PLAIN("batch_norm_inference", BatchNormInference, kOne)                                          \
  SCRATCH("batch_norm_relu", BatchNormRelu, BatchNormScratchBytes, kOne)                           \
  SCRATCH("batch_norm_relu_max_pool", BatchNormReluMaxPool, BatchNormScratchBytes, {0b1, 0b10001}) \
  SCRATCH("batch_norm_relu_grad", BatchNormReluGradient, BatchNormScratchBytes, {0b1001, 0b1})     \
  PLAIN("class_token", ClassToken, kOne)                                                           \
  SCRATCH("class_token_grad", ClassTokenGrad, ClassTokenGradScratchBytes, kOne)                    \
  SCRATCH("conv2d", Conv2d, Conv2dScratchBytes, kMixed)                                            \
  SCRATCH("conv2d_batch_norm", Conv2dBatchNorm, Conv2dBatchNormScratchBytes, kOne)                 \
  SCRATCH("conv2d_batch_norm_add_relu", Conv2dBatchNormAddRelu,                                    \
          Conv2dBatchNormAddReluScratchBytes, kPair)                                               \
  SCRATCH("conv2d_batch_norm_grad", Conv2dBatchNormGrad, Conv2dBatchNormGradScratchBytes,          \
          {0b1001, 0b1})                                                                           \
  SCRATCH("conv2d_grad_input", Conv2dGradInput, Conv2dGradInputScratchBytes, kMixed)               \
  SCRATCH("conv2d_grad_weights", Conv2dGradWeights, Conv2dGradWeightsScratchBytes,                 \
          {0b11, 0, false})                                                                        \
  SCRATCH("conv2d_relu", Conv2dRelu, Conv2dReluScratchBytes, kMixed)                               \
  SCRATCH("dense", Dense, DenseScratchBytes, kMixed)                                               \
  SCRATCH("dense_grad_input", DenseGradInput, DenseGradInputScratchBytes, kMixed)                  \
  SCRATCH("dense_grad_weights", DenseGradWeights, DenseGradWeightsScratchBytes, {0b11, 0, false})  \
  SCRATCH("dense_relu", DenseRelu, DenseReluScratchBytes, kMixed)                                  \
  SCRATCH("dense_sigmoid", DenseSigmoid, DenseSigmoidScratchBytes, kMixed)                         \
  SCRATCH("dense_tanh", DenseTanh, DenseTanhScratchBytes, kMixed)                                  \
  PLAIN("dropout", Dropout, kOne)                                                                  \
  PLAIN("dropout_grad", Dropout, kOne)                                                             \
  PLAIN("first_token", FirstToken, kOne)                                                           \
  PLAIN("first_token_grad", FirstTokenGrad, kOne)                                                  \
  PLAIN("gelu", Gelu, kOne)                                                                        \
  PLAIN("gelu_grad", GeluGrad, kPair)                                                              \
  PLAIN("global_average_pool", GlobalAveragePool, kMixed)                                          \
  PLAIN("global_average_pool_grad", GlobalAveragePoolGrad, kMixed)                                 \
  PLAIN("layer_norm", NormalizeLayer, kOne)                                                        \
  SCRATCH("layer_norm_grad", NormalizeLayerGrad, NormalizeLayerGradScratchBytes, {0b1001, 0b1})    \
  PLAIN("max_pool", MaxPool, kOne)                                                                 \
  SCRATCH("max_pool_batch_norm_relu_grad", MaxPoolBatchNormReluGrad,                               \
          MaxPoolBatchNormReluGradScratchBytes, {0b100110, 0b1})                                   \
  PLAIN("max_pool_grad", MaxPoolGrad, {0b10, 0b1})                                                 \
  PLAIN("pad_channels", PadChannels)                                                               \
  PLAIN("pad_channels_grad", PadChannelsGrad)                                                      \
  PLAIN("position_embedding", PositionEmbedding, kOne)                                             \
  SCRATCH("position_embedding_grad", PositionEmbeddingGrad, PositionEmbeddingGradScratchBytes,     \
          {0b1, 0})                                                                                \
  PLAIN("relu", Relu, kOne)                                                                        \
  PLAIN("relu_grad", ReluGrad, kPair)                                                              \
  PLAIN("sigmoid", Sigmoid, kOne)                                                                  \
  PLAIN("sigmoid_grad", SigmoidGrad, kPair)                                                        \
  PLAIN("softmax_cross_entropy", SoftmaxCrossEntropy)                                              \
  PLAIN("softmax_cross_entropy_grad", SoftmaxCrossEntropyGrad, {0, 0b1})                           \
  PLAIN("squared_error", SquaredError)                                                             \
  PLAIN("squared_error_grad", SquaredErrorGrad)                                                    \
  PLAIN("stochastic_depth", StochasticDepth, kOne)                                                 \
  PLAIN("stochastic_depth_grad", StochasticDepth, kOne)                                            \
  SCRATCH("tally", TallyUp, TallyUpScratchBytes)                                                   \
  PLAIN("tanh", Tanh, kOne)                                                                        \
  PLAIN("tanh_grad", TanhGrad, kPair)

namespace trireme::cuda {

#define TRIREME_DECLARE(op, run, ...) void run(const Call&, const Shard&, Context&);
#define TRIREME_DECLARE_BOTH(op, run, scratch, ...) \
  void run(const Call&, const Shard&, Context&);    \
  size_t scratch(const Call&, size_t samples, Context&);
TRIREME_CUDA_KERNELS(TRIREME_DECLARE, TRIREME_DECLARE_BOTH)

namespace {

// Operands in 16 bits: input and output 0; inputs 0 and 1, and output 0.
constexpr NarrowOperands kOne = {0b1, 0b1}, kPair = {0b11, 0b1};
// Input and output 0, each as it is.
constexpr NarrowOperands kMixed = {0b1, 0b1, false};

#define TRIREME_ROW(op, run, ...) {op, run, nullptr __VA_OPT__(, ) __VA_ARGS__},
#define TRIREME_ROW_OF_BOTH(op, run, scratch, ...) {op, run, scratch __VA_OPT__(, ) __VA_ARGS__},
constexpr KernelRow kKernels[] = {TRIREME_CUDA_KERNELS(TRIREME_ROW, TRIREME_ROW_OF_BOTH)};

}  // namespace

std::span<const KernelRow> Kernels() { return kKernels; }

const KernelRow* FindKernel(std::string_view op) {
  const auto row = std::ranges::find(kKernels, op, &KernelRow::op);
  return row == std::end(kKernels) ? nullptr : &*row;
}

NarrowOperands NarrowOperandsOf(const Node& node) {
  const KernelRow* const row = FindKernel(node.op->name);
  if (!row) return {};
  NarrowOperands narrow = row->narrow;
  if (node.attributes.choice == kMasked) narrow.inputs &= ~(1u << kSigns);
  return narrow;
}

}  // namespace trireme::cuda
