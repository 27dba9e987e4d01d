// The table of all kernels: one row per operation.
#include <algorithm>

#include "engine/cpu/call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/declarations-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Operands in bf16: input and output 0; inputs 0 and 1, and output 0.
constexpr NarrowOperands kOne = {0b1, 0b1}, kPair = {0b11, 0b1};
// Input and output 0, each as it is.
constexpr NarrowOperands kMixed = {0b1, 0b1, false};

constexpr KernelRow kKernels[] = {
    {"add", Add, nullptr, kPair},
    {"add_relu_grad", AddReluGrad, nullptr, {0b111, 0b1}},
    {"average_pool", AveragePool, nullptr, kOne},
    {"average_pool_grad", AveragePoolGrad, nullptr, kOne},
    {"batch_norm", BatchNorm, BatchNormScratch, kOne},
    {"batch_norm_add", BatchNormAdd, BatchNormScratch, kPair},
    {"batch_norm_add_relu", BatchNormAddRelu, BatchNormScratch, kPair},
    {"batch_norm_grad", BatchNormGrad, BatchNormGradScratch, {0b1001, 0b1}},
    {"batch_norm_inference", BatchNormInference, BatchNormInferenceScratch, kOne},
    {"batch_norm_relu", BatchNormRelu, BatchNormScratch, kOne},
    {"batch_norm_relu_grad", BatchNormReluGrad, BatchNormGradScratch, {0b1001, 0b1}},
    {"conv2d", Conv2d, Conv2dScratch, kMixed},
    {"conv2d_grad_input", Conv2dGradInput, Conv2dGradInputScratch, kMixed},
    {"conv2d_grad_weights", Conv2dGradWeights, Conv2dGradWeightsScratch, {0b11, 0, false}},
    {"conv2d_relu", Conv2dRelu, Conv2dScratch, kMixed},
    {"dense", Dense, DenseScratch},
    {"dense_grad_input", DenseGradInput, DenseGradInputScratch},
    {"dense_grad_weights", DenseGradWeights, DenseGradWeightsScratch},
    {"dense_relu", DenseRelu, DenseScratch},
    {"dense_sigmoid", DenseSigmoid, DenseScratch},
    {"dense_tanh", DenseTanh, DenseScratch},
    {"dropout", Dropout},
    {"dropout_grad", Dropout},  // the same mask
    {"global_average_pool", GlobalAveragePool, nullptr, {0b1, 0}},
    {"global_average_pool_grad", GlobalAveragePoolGrad, nullptr, {0, 0b1}},
    {"layer_norm", LayerNorm},
    {"layer_norm_grad", LayerNormGrad},
    {"max_pool", MaxPool, nullptr, kOne},
    {"max_pool_grad", MaxPoolGrad, nullptr, {0b10, 0b1}},
    {"relu", Relu, nullptr, kOne},
    {"relu_grad", ReluGrad, nullptr, kPair},
    {"sigmoid", Sigmoid, nullptr, kOne},
    {"sigmoid_grad", SigmoidGrad, nullptr, kPair},
    {"softmax_cross_entropy", SoftmaxCrossEntropy},
    {"softmax_cross_entropy_grad", SoftmaxCrossEntropyGrad},
    {"squared_error", SquaredError},
    {"squared_error_grad", SquaredErrorGrad},
    {"tally", Tally},
    {"tanh", Tanh, nullptr, kOne},
    {"tanh_grad", TanhGrad, nullptr, kPair},
};

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
