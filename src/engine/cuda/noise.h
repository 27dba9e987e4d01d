#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

#include "engine/cuda/array.h"

namespace trireme::cuda {

// Numbers between -1 and 1 that look random: how much power a product takes, and with it its clock,
// depends on what is multiplied.
void LaunchNoise(cudaStream_t stream, Array to, size_t size);

}  // namespace trireme::cuda
