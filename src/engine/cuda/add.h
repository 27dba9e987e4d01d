#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/array.h"

namespace trireme::cuda {

// y = a + b, all held alike; y may be a or b.
void LaunchAdd(cudaStream_t stream, Array a, Array b, Array y, size_t size);

// dx = a + b where y > 0, else 0; dx may be a or b.
void LaunchAddReluGrad(cudaStream_t stream, Array a, Array b, Array y, Array dx, size_t size);

// The same numbers, held otherwise.
void LaunchConvert(cudaStream_t stream, Array from, Array to, size_t size);

}  // namespace trireme::cuda
