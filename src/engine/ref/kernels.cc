#include "engine/ref/kernel.h"

// One row per operation. The gradient of dropout is the same mask.
#define TRIREME_REF_KERNELS(ROW)                             \
  ROW("absolute_error", AbsoluteError)                       \
  ROW("absolute_error_grad", AbsoluteErrorGrad)              \
  ROW("add", Add)                                            \
  ROW("average_pool", AveragePool)                           \
  ROW("average_pool_grad", AveragePoolGrad)                  \
  ROW("batch_norm", BatchNorm)                               \
  ROW("batch_norm_inference", BatchNormInference)            \
  ROW("batch_norm_grad", BatchNormGrad)                      \
  ROW("batch_norm_relu_grad", BatchNormReluGrad)             \
  ROW("conv2d", Conv2d)                                      \
  ROW("conv2d_grad_weights", Conv2dGradWeights)              \
  ROW("conv2d_grad_input", Conv2dGradInput)                  \
  ROW("dense", Dense)                                        \
  ROW("dense_grad_weights", DenseGradWeights)                \
  ROW("dense_grad_input", DenseGradInput)                    \
  ROW("dropout", Dropout)                                    \
  ROW("dropout_grad", Dropout)                               \
  ROW("global_average_pool", GlobalAveragePool)              \
  ROW("global_average_pool_grad", GlobalAveragePoolGrad)     \
  ROW("layer_norm", LayerNorm)                               \
  ROW("layer_norm_grad", LayerNormGrad)                      \
  ROW("max_pool", MaxPool)                                   \
  ROW("max_pool_grad", MaxPoolGrad)                          \
  ROW("pad_channels", PadChannels)                           \
  ROW("pad_channels_grad", PadChannelsGrad)                  \
  ROW("relu", Relu)                                          \
  ROW("relu_grad", ReluGrad)                                 \
  ROW("sigmoid", Sigmoid)                                    \
  ROW("sigmoid_grad", SigmoidGrad)                           \
  ROW("softmax_cross_entropy", SoftmaxCrossEntropy)          \
  ROW("softmax_cross_entropy_grad", SoftmaxCrossEntropyGrad) \
  ROW("squared_error", SquaredError)                         \
  ROW("squared_error_grad", SquaredErrorGrad)                \
  ROW("tally", Tally)                                        \
  ROW("tanh", Tanh)                                          \
  ROW("tanh_grad", TanhGrad)

namespace trireme::ref {

#define TRIREME_DECLARE(op, kernel) void kernel(const Call&);
TRIREME_REF_KERNELS(TRIREME_DECLARE)

Kernel FindKernel(std::string_view op) {
#define TRIREME_COMPARE(name, kernel) \
  if (op == name) return kernel;
  TRIREME_REF_KERNELS(TRIREME_COMPARE)
  return nullptr;
}

}  // namespace trireme::ref
