#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "engine/cuda/array.h"
#include "engine/cuda/window.h"

namespace trireme::cuda {

// Arrays of one call are held alike, but for those of GlobalAveragePool.

// The largest value of each window, the first of equals, and its place in the window.
void LaunchMaxPool(cudaStream_t stream, const Window& window, size_t samples, Array x, Array y,
                   uint8_t* index);
void LaunchMaxPoolGrad(cudaStream_t stream, const Window& window, size_t samples,
                       const uint8_t* index, Array dy, Array dx);

// Padding counts as zeros.
void LaunchAveragePool(cudaStream_t stream, const Window& window, size_t samples, Array x, Array y);
void LaunchAveragePoolGrad(cudaStream_t stream, const Window& window, size_t samples, Array dy,
                           Array dx);

// Every stride-th pixel, with channels of zeros behind its own, `padded` in all.
void LaunchPadChannels(cudaStream_t stream, const Window& window, int padded, size_t samples,
                       const float* x, float* y);
void LaunchPadChannelsGrad(cudaStream_t stream, const Window& window, int padded, size_t samples,
                           const float* dy, float* dx);

// x: samples of `pixels` rows of `channels` values.
void LaunchGlobalAveragePool(cudaStream_t stream, Array x, Array y, size_t samples, int pixels,
                             int channels);
void LaunchGlobalAveragePoolGrad(cudaStream_t stream, Array dy, Array dx, size_t samples,
                                 int pixels, int channels);

}  // namespace trireme::cuda
