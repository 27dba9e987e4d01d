// The table of all kernels: one row per operation.
#include <algorithm>

#include "engine/cpu/call.h"

// A row per operation: its name, its kernel, for SCRATCH how much memory beside it takes, and which
// operands it takes in bf16. The gradient of dropout is the same mask.
#define TRIREME_CPU_KERNELS(PLAIN, SCRATCH)                                                     \
  PLAIN("absolute_error", AbsoluteError)                                                        \
  PLAIN("absolute_error_grad", AbsoluteErrorGrad)                                               \
  PLAIN("add", Add, kPair)                                                                      \
  PLAIN("add_relu_grad", AddReluGrad, {0b111, 0b1})                                             \
  SCRATCH("attention", Attention, AttentionScratch, kOne)                                       \
  SCRATCH("attention_grad", AttentionGrad, AttentionGradScratch, {0b1011, 0b1})                 \
  PLAIN("average_pool", AveragePool, kOne)                                                      \
  PLAIN("average_pool_grad", AveragePoolGrad, kOne)                                             \
  SCRATCH("batch_norm", BatchNorm, BatchNormScratch, kOne)                                      \
  SCRATCH("batch_norm_add", BatchNormAdd, BatchNormScratch, kPair)                              \
  SCRATCH("batch_norm_add_relu", BatchNormAddRelu, BatchNormScratch, kPair)                     \
  SCRATCH("batch_norm_grad", BatchNormGrad, BatchNormGradScratch, {0b1001, 0b1})                \
  SCRATCH("batch_norm_inference", BatchNormInference, BatchNormInferenceScratch, kOne)          \
  SCRATCH("batch_norm_relu", BatchNormRelu, BatchNormScratch, kOne)                             \
  SCRATCH("batch_norm_relu_grad", BatchNormReluGrad, BatchNormGradScratch, {0b1001, 0b1})       \
  PLAIN("class_token", ClassToken, kOne)                                                        \
  PLAIN("class_token_grad", ClassTokenGrad, kOne)                                               \
  SCRATCH("conv2d", Conv2d, Conv2dScratch, kMixed)                                              \
  SCRATCH("conv2d_grad_input", Conv2dGradInput, Conv2dGradInputScratch, kMixed)                 \
  SCRATCH("conv2d_grad_weights", Conv2dGradWeights, Conv2dGradWeightsScratch, {0b11, 0, false}) \
  SCRATCH("conv2d_relu", Conv2dRelu, Conv2dScratch, kMixed)                                     \
  SCRATCH("dense", Dense, DenseScratch, kMixed)                                                 \
  SCRATCH("dense_grad_input", DenseGradInput, DenseGradInputScratch, kMixed)                    \
  SCRATCH("dense_grad_input_relu_grad", DenseGradInputReluGrad, DenseGradInputScratch,          \
          {0b11, 0b1, false})                                                                   \
  SCRATCH("dense_grad_weights", DenseGradWeights, DenseGradWeightsScratch, {0b11, 0, false})    \
  SCRATCH("dense_relu", DenseRelu, DenseScratch, kMixed)                                        \
  SCRATCH("dense_sigmoid", DenseSigmoid, DenseScratch)                                          \
  SCRATCH("dense_tanh", DenseTanh, DenseScratch)                                                \
  PLAIN("dropout", Dropout)                                                                     \
  PLAIN("dropout_grad", Dropout)                                                                \
  PLAIN("first_token", FirstToken, {0b1, 0})                                                    \
  PLAIN("first_token_grad", FirstTokenGrad, {0, 0b1})                                           \
  PLAIN("gelu", Gelu, kOne)                                                                     \
  PLAIN("gelu_grad", GeluGrad, kPair)                                                           \
  PLAIN("global_average_pool", GlobalAveragePool, {0b1, 0})                                     \
  PLAIN("global_average_pool_grad", GlobalAveragePoolGrad, {0, 0b1})                            \
  PLAIN("layer_norm", LayerNorm, kOne)                                                          \
  SCRATCH("layer_norm_grad", LayerNormGrad, LayerNormGradScratch, {0b1001, 0b1})                \
  PLAIN("max_pool", MaxPool, kOne)                                                              \
  PLAIN("max_pool_grad", MaxPoolGrad, {0b10, 0b1})                                              \
  PLAIN("pad_channels", PadChannels, kOne)                                                      \
  PLAIN("pad_channels_grad", PadChannelsGrad, kOne)                                             \
  PLAIN("position_embedding", PositionEmbedding, kOne)                                          \
  SCRATCH("position_embedding_grad", PositionEmbeddingGrad, PositionEmbeddingGradScratch,       \
          {0b1, 0})                                                                             \
  PLAIN("relu", Relu, kOne)                                                                     \
  PLAIN("relu_grad", ReluGrad, kPair)                                                           \
  PLAIN("sigmoid", Sigmoid, kOne)                                                               \
  PLAIN("sigmoid_grad", SigmoidGrad, kPair)                                                     \
  PLAIN("softmax_cross_entropy", SoftmaxCrossEntropy)                                           \
  PLAIN("softmax_cross_entropy_grad", SoftmaxCrossEntropyGrad)                                  \
  PLAIN("squared_error", SquaredError)                                                          \
  PLAIN("squared_error_grad", SquaredErrorGrad)                                                 \
  PLAIN("stochastic_depth", StochasticDepth, kOne)                                              \
  PLAIN("stochastic_depth_grad", StochasticDepth, kOne)                                         \
  PLAIN("tally", Tally)                                                                         \
  PLAIN("tanh", Tanh, kOne)                                                                     \
  PLAIN("tanh_grad", TanhGrad, kPair)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Operands in bf16: input and output 0; inputs 0 and 1, and output 0.
constexpr NarrowOperands kOne = {0b1, 0b1}, kPair = {0b11, 0b1};
// Input and output 0, each as it is.
constexpr NarrowOperands kMixed = {0b1, 0b1, false};

#define TRIREME_DECLARE(op, run, ...) void run(const Call&, const Shard&);
#define TRIREME_DECLARE_BOTH(op, run, scratch, ...) \
  void run(const Call&, const Shard&);              \
  size_t scratch(const Call&, size_t samples, size_t threads);
TRIREME_CPU_KERNELS(TRIREME_DECLARE, TRIREME_DECLARE_BOTH)

#define TRIREME_ROW(op, run, ...) {op, run, nullptr __VA_OPT__(, ) __VA_ARGS__},
#define TRIREME_ROW_OF_BOTH(op, run, scratch, ...) {op, run, scratch __VA_OPT__(, ) __VA_ARGS__},
constexpr KernelRow kKernels[] = {TRIREME_CPU_KERNELS(TRIREME_ROW, TRIREME_ROW_OF_BOTH)};

KernelTable Kernels() { return {kKernels, hwy::TargetName(HWY_TARGET)}; }

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::cpu {
HWY_EXPORT(Kernels);

KernelTable ChooseKernels() {
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return HWY_DYNAMIC_DISPATCH(Kernels)();
}

const KernelRow* KernelTable::Find(std::string_view op) const {
  const auto row = std::ranges::find(rows, op, &KernelRow::op);
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace trireme::cpu
#endif  // HWY_ONCE
