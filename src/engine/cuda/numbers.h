#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace trireme::cuda {

// What changes from shard to shard beside its samples (graph/engine.h, Batch). It lies on the card,
// where kernels read it: a captured graph stays right.
struct ShardNumbers {
  float loss_scale = 1, statistics_scale = 1, vote = 0;
  uint64_t random_key = 0, first_position = 0;
  float gradient_scale = 1;  // of the gradient of the loss: loss_scale, times that of the update
};

// The numbers travel with the launch, so that nobody has to keep them. `update_scale`: null, or on
// the card what the loss is scaled by besides (Batch::gradient_scale), as it is when this runs.
void LaunchWriteNumbers(cudaStream_t stream, const ShardNumbers& numbers, const float* update_scale,
                        ShardNumbers* to);

}  // namespace trireme::cuda
