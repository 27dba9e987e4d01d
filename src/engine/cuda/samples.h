#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/sample_change.h"

namespace trireme::cuda {

// Samples of bytes on a card.
struct SampleBytes {
  const uint8_t* bytes;
  const int32_t* numbers;       // which of them; null: all in order
  const SampleChange* changes;  // of each; null: there are none
  ByteLook look;
  int count;
};

// What a network sees of them.
void LaunchDrawSamples(cudaStream_t stream, const SampleBytes& samples, float* to);

}  // namespace trireme::cuda
