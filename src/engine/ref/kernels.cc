#include "engine/ref/kernels.h"

namespace trireme::ref {
namespace {

struct Row {
  std::string_view op;
  Kernel kernel;
};

const Row kRefKernels[] = {
    {"add", Add},
    {"average_pool", AveragePool},
    {"average_pool_grad", AveragePoolGrad},
    {"batch_norm", BatchNorm},
    {"batch_norm_inference", BatchNormInference},
    {"batch_norm_grad", BatchNormGrad},
    {"batch_norm_relu_grad", BatchNormReluGrad},
    {"conv2d", Conv2d},
    {"conv2d_grad_weights", Conv2dGradWeights},
    {"conv2d_grad_input", Conv2dGradInput},
    {"dense", Dense},
    {"dense_grad_weights", DenseGradWeights},
    {"dense_grad_input", DenseGradInput},
    {"dropout", Dropout},
    {"dropout_grad", Dropout},  // the same mask on the gradient
    {"global_average_pool", GlobalAveragePool},
    {"global_average_pool_grad", GlobalAveragePoolGrad},
    {"layer_norm", LayerNorm},
    {"layer_norm_grad", LayerNormGrad},
    {"max_pool", MaxPool},
    {"max_pool_grad", MaxPoolGrad},
    {"relu", Relu},
    {"relu_grad", ReluGrad},
    {"sigmoid", Sigmoid},
    {"sigmoid_grad", SigmoidGrad},
    {"softmax_cross_entropy", SoftmaxCrossEntropy},
    {"softmax_cross_entropy_grad", SoftmaxCrossEntropyGrad},
    {"squared_error", SquaredError},
    {"squared_error_grad", SquaredErrorGrad},
    {"tally", Tally},
    {"tanh", Tanh},
    {"tanh_grad", TanhGrad},
};

}  // namespace

Kernel FindKernel(std::string_view op) {
  for (const Row& row : kRefKernels) {
    if (row.op == op) return row.kernel;
  }
  return nullptr;
}

}  // namespace trireme::ref
