#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/array.h"
#include "engine/cuda/window.h"

namespace trireme::cuda {

// Convolutions for which cuDNN has no plan, whatever their sizes: one thread for each result, slow.
// `window` slides over the input; weights lie as [out][kh][kw][in]. Arrays are held alike.
void LaunchPlainConv(cudaStream_t stream, const Window& window, int out, size_t samples, Array x,
                     Array weights, Array y);
void LaunchPlainConvGradInput(cudaStream_t stream, const Window& window, int out, size_t samples,
                              Array dy, Array weights, Array dx);
void LaunchPlainConvGradWeights(cudaStream_t stream, const Window& window, int out, size_t samples,
                                Array x, Array dy, Array d_weights);

}  // namespace trireme::cuda
