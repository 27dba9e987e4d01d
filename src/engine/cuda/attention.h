#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/array.h"

// attention: y = softmax(q k^T / sqrt(D)) v, head by head. Of T tokens, H heads and D channels of a
// head, x is [T][3][H][D] with q, k and v, y [T][H][D], log_sum [T][H]. Only blocks of the square
// of scores are ever held, in registers.

namespace trireme::cuda {

struct AttentionSizes {
  size_t samples;
  int tokens, heads, channels;  // T, H, D
};

// How products of float32 are computed. Numbers of 16 bits are multiplied as they are.
enum class FloatProducts { kExact, kTf32 };

// All arrays are held alike.
struct Attention {
  AttentionSizes sizes;
  Array x, y;
  float* log_sum;
};
void LaunchAttention(cudaStream_t stream, FloatProducts products, const Attention& attention);

struct AttentionGrad {
  AttentionSizes sizes;
  Array x, y;
  const float* log_sum;
  Array dy, dx;
  float* means;  // [samples][T][H], for what one kernel leaves the other
};
void LaunchAttentionGrad(cudaStream_t stream, FloatProducts products, const AttentionGrad& grad);

}  // namespace trireme::cuda
