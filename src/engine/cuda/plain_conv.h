#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/window.h"

namespace trireme::cuda {

// Convolutions for which cuDNN has no plan, whatever their sizes: one thread for each result, slow.
// `window` slides over the input; weights lie as [out][kh][kw][in].
void LaunchPlainConv(cudaStream_t stream, const Window& window, int out, size_t samples,
                     const float* x, const float* weights, float* y);
void LaunchPlainConvGradInput(cudaStream_t stream, const Window& window, int out, size_t samples,
                              const float* dy, const float* weights, float* dx);
void LaunchPlainConvGradWeights(cudaStream_t stream, const Window& window, int out, size_t samples,
                                const float* x, const float* dy, float* d_weights);

}  // namespace trireme::cuda
