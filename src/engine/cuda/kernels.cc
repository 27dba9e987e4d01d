// The table of all kernels: one row per operation.
#include "engine/cuda/kernels.h"

#include <algorithm>

// A row per operation: its name, its kernel, and for SCRATCH how much memory beside it takes. The
// gradient of dropout is the same mask.
#define TRIREME_CUDA_KERNELS(PLAIN, SCRATCH)                                       \
  PLAIN("absolute_error", AbsoluteError)                                           \
  PLAIN("absolute_error_grad", AbsoluteErrorGrad)                                  \
  PLAIN("add", Add)                                                                \
  PLAIN("add_relu_grad", AddReluGrad)                                              \
  PLAIN("average_pool", AveragePool)                                               \
  PLAIN("average_pool_grad", AveragePoolGrad)                                      \
  SCRATCH("batch_norm", BatchNorm, BatchNormScratchBytes)                          \
  SCRATCH("batch_norm_add", BatchNormAdd, BatchNormScratchBytes)                   \
  SCRATCH("batch_norm_add_relu", BatchNormAddRelu, BatchNormScratchBytes)          \
  SCRATCH("batch_norm_grad", BatchNormGradient, BatchNormScratchBytes)             \
  PLAIN("batch_norm_inference", BatchNormInference)                                \
  SCRATCH("batch_norm_relu", BatchNormRelu, BatchNormScratchBytes)                 \
  SCRATCH("batch_norm_relu_grad", BatchNormReluGradient, BatchNormScratchBytes)    \
  SCRATCH("conv2d", Conv2d, Conv2dScratchBytes)                                    \
  SCRATCH("conv2d_grad_input", Conv2dGradInput, Conv2dGradInputScratchBytes)       \
  SCRATCH("conv2d_grad_weights", Conv2dGradWeights, Conv2dGradWeightsScratchBytes) \
  SCRATCH("conv2d_relu", Conv2dRelu, Conv2dScratchBytes)                           \
  SCRATCH("dense", Dense, DenseScratchBytes)                                       \
  SCRATCH("dense_grad_input", DenseGradInput, DenseScratchBytes)                   \
  SCRATCH("dense_grad_weights", DenseGradWeights, DenseGradWeightsScratchBytes)    \
  SCRATCH("dense_relu", DenseRelu, DenseScratchBytes)                              \
  SCRATCH("dense_sigmoid", DenseSigmoid, DenseScratchBytes)                        \
  SCRATCH("dense_tanh", DenseTanh, DenseScratchBytes)                              \
  PLAIN("dropout", Dropout)                                                        \
  PLAIN("dropout_grad", Dropout)                                                   \
  PLAIN("global_average_pool", GlobalAveragePool)                                  \
  PLAIN("global_average_pool_grad", GlobalAveragePoolGrad)                         \
  PLAIN("layer_norm", NormalizeLayer)                                              \
  PLAIN("layer_norm_grad", NormalizeLayerGrad)                                     \
  PLAIN("max_pool", MaxPool)                                                       \
  PLAIN("max_pool_grad", MaxPoolGrad)                                              \
  PLAIN("relu", Relu)                                                              \
  PLAIN("relu_grad", ReluGrad)                                                     \
  PLAIN("sigmoid", Sigmoid)                                                        \
  PLAIN("sigmoid_grad", SigmoidGrad)                                               \
  PLAIN("softmax_cross_entropy", SoftmaxCrossEntropy)                              \
  PLAIN("softmax_cross_entropy_grad", SoftmaxCrossEntropyGrad)                     \
  PLAIN("squared_error", SquaredError)                                             \
  PLAIN("squared_error_grad", SquaredErrorGrad)                                    \
  PLAIN("tally", TallyUp)                                                          \
  PLAIN("tanh", Tanh)                                                              \
  PLAIN("tanh_grad", TanhGrad)

namespace trireme::cuda {

#define TRIREME_DECLARE(op, run) void run(const Call&, const Shard&, Context&);
#define TRIREME_DECLARE_BOTH(op, run, scratch)   \
  void run(const Call&, const Shard&, Context&); \
  size_t scratch(const Call&, size_t samples, Context&);
TRIREME_CUDA_KERNELS(TRIREME_DECLARE, TRIREME_DECLARE_BOTH)

namespace {

#define TRIREME_ROW(op, run) {op, run},
#define TRIREME_ROW_OF_BOTH(op, run, scratch) {op, run, scratch},
constexpr KernelRow kKernels[] = {TRIREME_CUDA_KERNELS(TRIREME_ROW, TRIREME_ROW_OF_BOTH)};

}  // namespace

std::span<const KernelRow> Kernels() { return kKernels; }

const KernelRow* FindKernel(std::string_view op) {
  const auto row = std::ranges::find(kKernels, op, &KernelRow::op);
  return row == std::end(kKernels) ? nullptr : &*row;
}

}  // namespace trireme::cuda
