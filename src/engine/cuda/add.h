#pragma once
#include <cuda_runtime.h>

#include <cstddef>

namespace trireme::cuda {

// y = a + b; y may be a or b.
void LaunchAdd(cudaStream_t stream, const float* a, const float* b, float* y, size_t size);

// dx = a + b where y > 0, else 0; dx may be a or b.
void LaunchAddReluGrad(cudaStream_t stream, const float* a, const float* b, const float* y,
                       float* dx, size_t size);

}  // namespace trireme::cuda
