#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "base/label.h"
#include "engine/cuda/array.h"
#include "engine/cuda/numbers.h"

namespace trireme::cuda {

// The outputs of a network, a row of `classes` for each sample, and what they should have been: the
// numbers of classes, or of a single output the bits of a float.
struct Outputs {
  size_t samples;
  int classes;
  const float* values;
  const int32_t* labels;
  const float* class_weights = nullptr;  // what a sample's loss counts; null: 1
  const LabelMix* mixes = nullptr;       // of each sample; null: none is mixed
};

void LaunchSoftmaxCrossEntropy(cudaStream_t stream, const Outputs& logits, float smoothing,
                               float* losses, float* probabilities);
// `probabilities` are the values of the outputs.
void LaunchSoftmaxCrossEntropyGrad(cudaStream_t stream, const Outputs& probabilities,
                                   float smoothing, const ShardNumbers* numbers, Array d_logits);

enum class Difference { kSquared, kAbsolute };
void LaunchDifference(cudaStream_t stream, Difference kind, const Outputs& outputs, float* losses);
void LaunchDifferenceGrad(cudaStream_t stream, Difference kind, const Outputs& outputs,
                          const ShardNumbers* numbers, float* dx);

// metrics[0..2] (+)= the losses times their scale, the correct predictions, the vote. Without
// samples: the vote alone, and no parts.
struct Tally {
  static constexpr size_t kMostBlocks = 128;
  const float* losses;
  const ShardNumbers* numbers;
  double* parts;      // two for each block
  unsigned* counter;  // 0 before and after
  float* metrics;
  bool accumulate;
};
void LaunchTally(cudaStream_t stream, const Outputs& logits, const Tally& tally);

}  // namespace trireme::cuda
