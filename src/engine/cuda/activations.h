#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/array.h"

namespace trireme::cuda {

enum class Activation { kNone, kRelu, kSigmoid, kTanh, kGelu };

// Arrays of one call are held alike.

// y = f(x); y may be x.
void LaunchActivation(cudaStream_t stream, Activation f, Array x, Array y, size_t size);

// dx = dy f', which y tells (of gelu: x, given in its place); dx may be dy.
void LaunchActivationGrad(cudaStream_t stream, Activation f, Array y, Array dy, Array dx,
                          size_t size);

// y = f(y + bias) for rows of `channels` values; without a bias (null) y = f(y).
void LaunchBiasActivation(cudaStream_t stream, Activation f, const float* bias, Array y,
                          size_t rows, int channels);

}  // namespace trireme::cuda
