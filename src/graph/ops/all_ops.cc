#include "graph/ops/all_ops.h"

namespace trireme {
namespace {

const OpDef* const kAllOps[] = {
    &kDense,
    &kDenseGradWeights,
    &kDenseGradInput,
    &kDenseRelu,
    &kDenseSigmoid,
    &kDenseTanh,
    &kConv2d,
    &kConv2dGradWeights,
    &kConv2dGradInput,
    &kConv2dRelu,
    &kBatchNorm,
    &kBatchNormInference,
    &kBatchNormGrad,
    &kBatchNormRelu,
    &kBatchNormReluGrad,
    &kBatchNormAdd,
    &kBatchNormAddRelu,
    &kLayerNorm,
    &kLayerNormGrad,
    &kRelu,
    &kReluGrad,
    &kSigmoid,
    &kSigmoidGrad,
    &kTanh,
    &kTanhGrad,
    &kAdd,
    &kAddReluGrad,
    &kMaxPool,
    &kMaxPoolGrad,
    &kAveragePool,
    &kAveragePoolGrad,
    &kGlobalAveragePool,
    &kGlobalAveragePoolGrad,
    &kFlatten,
    &kUnflatten,
    &kDropout,
    &kDropoutGrad,
    &kSoftmaxCrossEntropy,
    &kSoftmaxCrossEntropyGrad,
    &kSquaredError,
    &kSquaredErrorGrad,
    &kTally,
};

}  // namespace

std::span<const OpDef* const> AllOps() { return kAllOps; }

}  // namespace trireme
