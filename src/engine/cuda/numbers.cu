#include "engine/cuda/numbers.h"

namespace trireme::cuda {
namespace {

__global__ void WriteNumbers(ShardNumbers numbers, const float* update_scale, ShardNumbers* to) {
  numbers.gradient_scale = numbers.loss_scale * (update_scale ? *update_scale : 1);
  *to = numbers;
}

}  // namespace

void LaunchWriteNumbers(cudaStream_t stream, const ShardNumbers& numbers, const float* update_scale,
                        ShardNumbers* to) {
  WriteNumbers<<<1, 1, 0, stream>>>(numbers, update_scale, to);
}

}  // namespace trireme::cuda
