#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/array.h"
#include "engine/cuda/columns.h"

namespace trireme::cuda {

// All `size` values of a sample (or token) are one population; mean and inv_std have one for each.
// Without weight and bias (null) nothing is scaled or shifted. Arrays are held alike.
struct LayerNorm {
  size_t samples, size;
  Array x;
  const float *weight, *bias;
  float epsilon;
  Array y;
  float *mean, *inv_std;
};
void LaunchLayerNorm(cudaStream_t stream, const LayerNorm &norm);

struct LayerNormGrad {
  size_t samples, size;
  Array x;
  const float *mean, *inv_std;
  Array dy;
  const float *weight;  // null: not affine, and there are no gradients of parameters
  Array dx;
  float *d_weight, *d_bias;
  bool accumulate;
};
// `columns`: samples and size.
void LaunchLayerNormGrad(cudaStream_t stream, const LayerNormGrad &grad, const Columns &columns,
                         const ColumnScratch &scratch);

}  // namespace trireme::cuda
