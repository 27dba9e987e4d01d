#include "engine/cuda/numbers.h"

namespace trireme::cuda {
namespace {

__global__ void WriteNumbers(ShardNumbers numbers, ShardNumbers* to) { *to = numbers; }

}  // namespace

void LaunchWriteNumbers(cudaStream_t stream, const ShardNumbers& numbers, ShardNumbers* to) {
  WriteNumbers<<<1, 1, 0, stream>>>(numbers, to);
}

}  // namespace trireme::cuda
