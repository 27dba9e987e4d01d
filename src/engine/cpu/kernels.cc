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

constexpr KernelRow kKernels[] = {
    {"add", Add},
    {"add_relu_grad", AddReluGrad},
    {"average_pool", AveragePool},
    {"average_pool_grad", AveragePoolGrad},
    {"batch_norm", BatchNorm, BatchNormScratch},
    {"batch_norm_add", BatchNormAdd, BatchNormScratch},
    {"batch_norm_add_relu", BatchNormAddRelu, BatchNormScratch},
    {"batch_norm_grad", BatchNormGrad, BatchNormGradScratch},
    {"batch_norm_inference", BatchNormInference, BatchNormInferenceScratch},
    {"batch_norm_relu", BatchNormRelu, BatchNormScratch},
    {"conv2d", Conv2d, Conv2dScratch},
    {"conv2d_grad_input", Conv2dGradInput, Conv2dGradInputScratch},
    {"conv2d_grad_weights", Conv2dGradWeights, Conv2dGradWeightsScratch},
    {"conv2d_relu", Conv2dRelu, Conv2dScratch},
    {"dense", Dense, DenseScratch},
    {"dense_grad_input", DenseGradInput, DenseGradInputScratch},
    {"dense_grad_weights", DenseGradWeights, DenseGradWeightsScratch},
    {"dense_relu", DenseRelu, DenseScratch},
    {"dense_sigmoid", DenseSigmoid, DenseScratch},
    {"dense_tanh", DenseTanh, DenseScratch},
    {"dropout", Dropout},
    {"dropout_grad", Dropout},  // the same mask
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
