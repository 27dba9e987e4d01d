#pragma once
#include <cuda_runtime.h>

#include <cstddef>

namespace trireme::cuda {

// All `size` values of a sample are one population; mean and inv_std have one for each sample.
// Without weight and bias (null) nothing is scaled or shifted.
struct LayerNorm {
  size_t samples, size;
  const float* x;
  const float *weight, *bias;
  float epsilon;
  float *y, *mean, *inv_std;
};
void LaunchLayerNorm(cudaStream_t stream, const LayerNorm& norm);

struct LayerNormGrad {
  size_t samples, size;
  const float *x, *mean, *inv_std, *dy;
  const float* weight;  // null: not affine, and there are no gradients of parameters
  float* dx;
  float *d_weight, *d_bias;
  bool accumulate;
};
void LaunchLayerNormGrad(cudaStream_t stream, const LayerNormGrad& grad);

}  // namespace trireme::cuda
