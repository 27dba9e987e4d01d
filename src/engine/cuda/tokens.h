#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/array.h"
#include "engine/cuda/dropout.h"

namespace trireme::cuda {

// Samples whose values are `tokens` rows of `channels` numbers.
struct TokenSizes {
  size_t samples;
  int tokens, channels;
};

// y has one token more than x, before the others: `token`, of all samples alike.
void LaunchClassToken(cudaStream_t stream, const TokenSizes& of_y, const float* token, Array x,
                      Array y);
// dx is dy without its first token.
void LaunchWithoutFirstToken(cudaStream_t stream, const TokenSizes& of_dy, Array dy, Array dx);
// y is the first token of x.
void LaunchFirstToken(cudaStream_t stream, const TokenSizes& of_x, Array x, Array y);
// dx has dy as its first token, and zeros.
void LaunchFirstTokenGrad(cudaStream_t stream, const TokenSizes& of_dx, Array dy, Array dx);
// y = x + positions, a number for each of a sample; y may be x.
void LaunchPositions(cudaStream_t stream, const TokenSizes& sizes, const float* positions, Array x,
                     Array y);
// Whole samples are kept or set to 0: a mask of samples of one value.
void LaunchStochasticDepth(cudaStream_t stream, const Mask& mask, size_t samples, int sample_size,
                           Array x, Array y);

}  // namespace trireme::cuda
