#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "engine/cuda/window.h"

namespace trireme::cuda {

// The largest value of each window, the first of equals, and its place in the window.
void LaunchMaxPool(cudaStream_t stream, const Window& window, size_t samples, const float* x,
                   float* y, uint8_t* index);
void LaunchMaxPoolGrad(cudaStream_t stream, const Window& window, size_t samples,
                       const uint8_t* index, const float* dy, float* dx);

// Padding counts as zeros.
void LaunchAveragePool(cudaStream_t stream, const Window& window, size_t samples, const float* x,
                       float* y);
void LaunchAveragePoolGrad(cudaStream_t stream, const Window& window, size_t samples,
                           const float* dy, float* dx);

// x: samples of `pixels` rows of `channels` values.
void LaunchGlobalAveragePool(cudaStream_t stream, const float* x, float* y, size_t samples,
                             int pixels, int channels);
void LaunchGlobalAveragePoolGrad(cudaStream_t stream, const float* dy, float* dx, size_t samples,
                                 int pixels, int channels);

}  // namespace trireme::cuda
