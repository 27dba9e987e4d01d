#pragma once
#include "engine/ref/kernel.h"

namespace trireme::ref {

// One line per file.
void Add(const Call&);
void AveragePool(const Call&), AveragePoolGrad(const Call&);
void BatchNorm(const Call&), BatchNormInference(const Call&), BatchNormGrad(const Call&),
    BatchNormReluGrad(const Call&);
void Conv2d(const Call&), Conv2dGradWeights(const Call&), Conv2dGradInput(const Call&);
void Dense(const Call&), DenseGradWeights(const Call&), DenseGradInput(const Call&);
void Dropout(const Call&);
void GlobalAveragePool(const Call&), GlobalAveragePoolGrad(const Call&);
void LayerNorm(const Call&), LayerNormGrad(const Call&);
void MaxPool(const Call&), MaxPoolGrad(const Call&);
void Relu(const Call&), ReluGrad(const Call&);
void Sigmoid(const Call&), SigmoidGrad(const Call&);
void SoftmaxCrossEntropy(const Call&), SoftmaxCrossEntropyGrad(const Call&);
void SquaredError(const Call&), SquaredErrorGrad(const Call&);
void Tally(const Call&);
void Tanh(const Call&), TanhGrad(const Call&);

}  // namespace trireme::ref
