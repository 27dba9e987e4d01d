// The kernels of one target, declared for the table (kernels.cc).
#if defined(TRIREME_ENGINE_CPU_DECLARATIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_DECLARATIONS_INL_H_
#undef TRIREME_ENGINE_CPU_DECLARATIONS_INL_H_
#else
#define TRIREME_ENGINE_CPU_DECLARATIONS_INL_H_
#endif

#include "engine/cpu/call.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

void Add(const Call& call, const Shard& shard);
void AddReluGrad(const Call& call, const Shard& shard);
void AveragePool(const Call& call, const Shard& shard);
void AveragePoolGrad(const Call& call, const Shard& shard);
void BatchNorm(const Call& call, const Shard& shard);
void BatchNormAdd(const Call& call, const Shard& shard);
void BatchNormAddRelu(const Call& call, const Shard& shard);
void BatchNormGrad(const Call& call, const Shard& shard);
void BatchNormInference(const Call& call, const Shard& shard);
void BatchNormRelu(const Call& call, const Shard& shard);
void BatchNormReluGrad(const Call& call, const Shard& shard);
void Conv2d(const Call& call, const Shard& shard);
void Conv2dGradInput(const Call& call, const Shard& shard);
void Conv2dGradWeights(const Call& call, const Shard& shard);
void Conv2dRelu(const Call& call, const Shard& shard);
void Dense(const Call& call, const Shard& shard);
void DenseGradInput(const Call& call, const Shard& shard);
void DenseGradWeights(const Call& call, const Shard& shard);
void DenseRelu(const Call& call, const Shard& shard);
void DenseSigmoid(const Call& call, const Shard& shard);
void DenseTanh(const Call& call, const Shard& shard);
void Dropout(const Call& call, const Shard& shard);
void GlobalAveragePool(const Call& call, const Shard& shard);
void GlobalAveragePoolGrad(const Call& call, const Shard& shard);
void LayerNorm(const Call& call, const Shard& shard);
void LayerNormGrad(const Call& call, const Shard& shard);
void MaxPool(const Call& call, const Shard& shard);
void MaxPoolGrad(const Call& call, const Shard& shard);
void Relu(const Call& call, const Shard& shard);
void ReluGrad(const Call& call, const Shard& shard);
void Sigmoid(const Call& call, const Shard& shard);
void SigmoidGrad(const Call& call, const Shard& shard);
void SoftmaxCrossEntropy(const Call& call, const Shard& shard);
void SoftmaxCrossEntropyGrad(const Call& call, const Shard& shard);
void SquaredError(const Call& call, const Shard& shard);
void SquaredErrorGrad(const Call& call, const Shard& shard);
void Tally(const Call& call, const Shard& shard);
void Tanh(const Call& call, const Shard& shard);
void TanhGrad(const Call& call, const Shard& shard);

size_t BatchNormScratch(const Call& call, size_t samples, size_t threads);
size_t BatchNormGradScratch(const Call& call, size_t samples, size_t threads);
size_t BatchNormInferenceScratch(const Call& call, size_t samples, size_t threads);
size_t Conv2dScratch(const Call& call, size_t samples, size_t threads);
size_t Conv2dGradInputScratch(const Call& call, size_t samples, size_t threads);
size_t Conv2dGradWeightsScratch(const Call& call, size_t samples, size_t threads);
size_t DenseScratch(const Call& call, size_t samples, size_t threads);
size_t DenseGradInputScratch(const Call& call, size_t samples, size_t threads);
size_t DenseGradWeightsScratch(const Call& call, size_t samples, size_t threads);

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
