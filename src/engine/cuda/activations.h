#pragma once
#include <cuda_runtime.h>

#include <cstddef>

namespace trireme::cuda {

enum class Activation { kNone, kRelu, kSigmoid, kTanh };

// y = f(x); y may be x.
void LaunchActivation(cudaStream_t stream, Activation f, const float* x, float* y, size_t size);

// dx = dy f', which y tells; dx may be dy.
void LaunchActivationGrad(cudaStream_t stream, Activation f, const float* y, const float* dy,
                          float* dx, size_t size);

// y = f(y + bias) for rows of `channels` values; without a bias (null) y = f(y).
void LaunchBiasActivation(cudaStream_t stream, Activation f, const float* bias, float* y,
                          size_t rows, int channels);

}  // namespace trireme::cuda
