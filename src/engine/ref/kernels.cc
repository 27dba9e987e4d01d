#include "engine/ref/kernel.h"

// One row per operation; LOSS: it reads or makes a loss. The gradient of dropout is the same mask.
#define TRIREME_REF_KERNELS(ROW, LOSS)                        \
  LOSS("absolute_error", AbsoluteError)                       \
  LOSS("absolute_error_grad", AbsoluteErrorGrad)              \
  ROW("add", Add)                                             \
  ROW("attention", Attention)                                 \
  ROW("attention_grad", AttentionGrad)                        \
  ROW("average_pool", AveragePool)                            \
  ROW("average_pool_grad", AveragePoolGrad)                   \
  ROW("batch_norm", BatchNorm)                                \
  ROW("batch_norm_inference", BatchNormInference)             \
  ROW("batch_norm_grad", BatchNormGrad)                       \
  ROW("batch_norm_relu_grad", BatchNormReluGrad)              \
  ROW("class_token", ClassToken)                              \
  ROW("class_token_grad", ClassTokenGrad)                     \
  ROW("conv2d", Conv2d)                                       \
  ROW("conv2d_batch_norm_grad", Conv2dBatchNormGrad)          \
  ROW("conv2d_grad_weights", Conv2dGradWeights)               \
  ROW("conv2d_grad_input", Conv2dGradInput)                   \
  ROW("dense", Dense)                                         \
  ROW("dense_grad_weights", DenseGradWeights)                 \
  ROW("dense_grad_input", DenseGradInput)                     \
  ROW("dropout", Dropout)                                     \
  ROW("dropout_grad", Dropout)                                \
  ROW("first_token", FirstToken)                              \
  ROW("first_token_grad", FirstTokenGrad)                     \
  ROW("gelu", Gelu)                                           \
  ROW("gelu_grad", GeluGrad)                                  \
  ROW("global_average_pool", GlobalAveragePool)               \
  ROW("global_average_pool_grad", GlobalAveragePoolGrad)      \
  ROW("layer_norm", LayerNorm)                                \
  ROW("layer_norm_grad", LayerNormGrad)                       \
  ROW("max_pool", MaxPool)                                    \
  ROW("max_pool_grad", MaxPoolGrad)                           \
  ROW("pad_channels", PadChannels)                            \
  ROW("pad_channels_grad", PadChannelsGrad)                   \
  ROW("position_embedding", PositionEmbedding)                \
  ROW("position_embedding_grad", PositionEmbeddingGrad)       \
  ROW("relu", Relu)                                           \
  ROW("relu_grad", ReluGrad)                                  \
  ROW("sigmoid", Sigmoid)                                     \
  ROW("sigmoid_grad", SigmoidGrad)                            \
  LOSS("softmax_cross_entropy", SoftmaxCrossEntropy)          \
  LOSS("softmax_cross_entropy_grad", SoftmaxCrossEntropyGrad) \
  LOSS("squared_error", SquaredError)                         \
  LOSS("squared_error_grad", SquaredErrorGrad)                \
  ROW("stochastic_depth", StochasticDepth)                    \
  ROW("stochastic_depth_grad", StochasticDepth)               \
  LOSS("tally", Tally)                                        \
  ROW("tanh", Tanh)                                           \
  ROW("tanh_grad", TanhGrad)

namespace trireme::ref {

#define TRIREME_DECLARE(op, kernel) void kernel(const Call&);
TRIREME_REF_KERNELS(TRIREME_DECLARE, TRIREME_DECLARE)

Kernel FindKernel(std::string_view op) {
#define TRIREME_COMPARE(name, kernel) \
  if (op == name) return kernel;
  TRIREME_REF_KERNELS(TRIREME_COMPARE, TRIREME_COMPARE)
  return nullptr;
}

bool IsOfLoss(std::string_view op) {
#define TRIREME_NOTHING(name, kernel)
#define TRIREME_IS(name, kernel) \
  if (op == name) return true;
  TRIREME_REF_KERNELS(TRIREME_NOTHING, TRIREME_IS)
  return false;
}

}  // namespace trireme::ref
