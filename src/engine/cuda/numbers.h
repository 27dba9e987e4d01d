#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace trireme::cuda {

// What changes from shard to shard beside its samples (graph/engine.h, Batch). It lies on the card,
// where kernels read it: a captured graph stays right.
struct ShardNumbers {
  float loss_scale = 1, statistics_scale = 1, vote = 0;
  uint64_t random_key = 0, first_position = 0;
};

// The numbers travel with the launch, so that nobody has to keep them.
void LaunchWriteNumbers(cudaStream_t stream, const ShardNumbers& numbers, ShardNumbers* to);

}  // namespace trireme::cuda
