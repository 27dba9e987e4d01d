#include "graph/op.h"

// The one list of operations: in the order of docs/operations.md.
#define TRIREME_OPS(OP)           \
  OP(kDense)                      \
  OP(kDenseGradWeights)           \
  OP(kDenseGradInput)             \
  OP(kDenseGradInputReluGrad)     \
  OP(kDenseRelu)                  \
  OP(kDenseSigmoid)               \
  OP(kDenseTanh)                  \
  OP(kConv2d)                     \
  OP(kConv2dGradWeights)          \
  OP(kConv2dGradInput)            \
  OP(kConv2dRelu)                 \
  OP(kBatchNorm)                  \
  OP(kBatchNormInference)         \
  OP(kBatchNormGrad)              \
  OP(kBatchNormRelu)              \
  OP(kBatchNormReluGrad)          \
  OP(kBatchNormAdd)               \
  OP(kBatchNormAddRelu)           \
  OP(kBatchNormReluMaxPool)       \
  OP(kConv2dBatchNorm)            \
  OP(kConv2dBatchNormGrad)        \
  OP(kConv2dBatchNormAddRelu)     \
  OP(kLayerNorm)                  \
  OP(kLayerNormGrad)              \
  OP(kAttention)                  \
  OP(kAttentionGrad)              \
  OP(kClassToken)                 \
  OP(kClassTokenGrad)             \
  OP(kPositionEmbedding)          \
  OP(kPositionEmbeddingGrad)      \
  OP(kFirstToken)                 \
  OP(kFirstTokenGrad)             \
  OP(kRelu)                       \
  OP(kReluGrad)                   \
  OP(kSigmoid)                    \
  OP(kSigmoidGrad)                \
  OP(kTanh)                       \
  OP(kTanhGrad)                   \
  OP(kGelu)                       \
  OP(kGeluGrad)                   \
  OP(kAdd)                        \
  OP(kAddReluGrad)                \
  OP(kAddReluBatchNormGrad)       \
  OP(kAddReluConv2dBatchNormGrad) \
  OP(kMaxPool)                    \
  OP(kMaxPoolGrad)                \
  OP(kMaxPoolBatchNormReluGrad)   \
  OP(kAveragePool)                \
  OP(kAveragePoolGrad)            \
  OP(kGlobalAveragePool)          \
  OP(kGlobalAveragePoolGrad)      \
  OP(kPadChannels)                \
  OP(kPadChannelsGrad)            \
  OP(kFlatten)                    \
  OP(kUnflatten)                  \
  OP(kDropout)                    \
  OP(kDropoutGrad)                \
  OP(kStochasticDepth)            \
  OP(kStochasticDepthGrad)        \
  OP(kSoftmaxCrossEntropy)        \
  OP(kSoftmaxCrossEntropyGrad)    \
  OP(kSquaredError)               \
  OP(kSquaredErrorGrad)           \
  OP(kAbsoluteError)              \
  OP(kAbsoluteErrorGrad)          \
  OP(kTally)

namespace trireme {

#define TRIREME_DECLARE(op) extern const OpDef op;
TRIREME_OPS(TRIREME_DECLARE)

namespace {

#define TRIREME_ADDRESS(op) &op,
const OpDef* const kAllOps[] = {TRIREME_OPS(TRIREME_ADDRESS)};

}  // namespace

std::span<const OpDef* const> AllOps() { return kAllOps; }

}  // namespace trireme
