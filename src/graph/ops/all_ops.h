#pragma once
#include "graph/op.h"

namespace trireme {

// One line per file of graph/ops, in the order of the list in all_ops.cc.
extern const OpDef kDense, kDenseGradWeights, kDenseGradInput, kDenseRelu, kDenseSigmoid,
    kDenseTanh;
extern const OpDef kConv2d, kConv2dGradWeights, kConv2dGradInput, kConv2dRelu;
extern const OpDef kBatchNorm, kBatchNormInference, kBatchNormGrad, kBatchNormRelu,
    kBatchNormReluGrad, kBatchNormAdd, kBatchNormAddRelu;
extern const OpDef kLayerNorm, kLayerNormGrad;
extern const OpDef kRelu, kReluGrad;
extern const OpDef kSigmoid, kSigmoidGrad;
extern const OpDef kTanh, kTanhGrad;
extern const OpDef kAdd, kAddReluGrad;
extern const OpDef kMaxPool, kMaxPoolGrad;
extern const OpDef kAveragePool, kAveragePoolGrad;
extern const OpDef kGlobalAveragePool, kGlobalAveragePoolGrad;
extern const OpDef kFlatten, kUnflatten;
extern const OpDef kDropout, kDropoutGrad;
extern const OpDef kSoftmaxCrossEntropy, kSoftmaxCrossEntropyGrad;
extern const OpDef kSquaredError, kSquaredErrorGrad;
extern const OpDef kTally;

}  // namespace trireme
