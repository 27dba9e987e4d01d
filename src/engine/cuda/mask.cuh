#pragma once
#include "base/random.h"
#include "engine/cuda/dropout.h"

namespace trireme::cuda {

// Whether number i of a shard's values is kept.
__device__ inline bool Keeps(const Mask& mask, size_t i) {
  const ShardNumbers& numbers = *mask.numbers;
  const Random random(HashKey(numbers.random_key, mask.layer));
  const uint64_t number = random.Bits(numbers.first_position * mask.sample_size + i) >> 11;
  return number >= mask.least;
}

}  // namespace trireme::cuda
