#pragma once
#include "engine/cuda/batch_norm.h"
#include "engine/cuda/pack.cuh"

// What kernels of batch-norm have in common.

namespace trireme::cuda {

// What forward computes before the relu; backward finds its sign again, to the bit.
__device__ inline float Normalised(float off, float scale, float bias) {
  return fmaf(off, scale, bias);
}

__device__ inline void FindFactors(const BatchNormGrad& g, int channels, int c, double n,
                                   double sum, double product, float* factors) {
  const double s = g.inv_std[c], factor = g.weight[c] * s;
  factors[c] = float(factor * s * s * product / n);
  factors[channels + c] = float(factor * sum / n);
}
__device__ inline void StoreGradients(const BatchNormGrad& g, int c, double sum, double product) {
  g.d_weight[c] = (g.accumulate ? g.d_weight[c] : 0) + float(product * g.inv_std[c]);
  g.d_bias[c] = (g.accumulate ? g.d_bias[c] : 0) + float(sum);
}

// With `sums` the factors are for later, when those of other ranks are there.
__device__ inline void FinishGrad(const BatchNormGrad& g, int channels, size_t rows, int c,
                                  double sum, double product, double* sums, float* factors) {
  StoreGradients(g, c, sum, product);
  if (!sums) return FindFactors(g, channels, c, double(rows), sum, product, factors);
  sums[c] = sum;
  sums[channels + c] = product;
  if (c == 0) sums[2 * channels] = double(rows);
}

// Of a channel pack: dy where the relu behind let y pass; without one, dy.
template <int kN, bool kRelu>
struct Passage {
  Floats<kN> mean, scale, bias;
  __device__ void Begin(const BatchNormGrad& g, int c) {
    mean = Load<kN>(g.mean + c);
    const Floats<kN> inv_std = Load<kN>(g.inv_std + c), weight = Load<kN>(g.weight + c);
#pragma unroll
    for (int i = 0; i < kN; ++i) scale[i] = inv_std[i] * weight[i];
    if (kRelu) bias = Load<kN>(g.bias + c);
  }
  __device__ float Passed(int i, float off, float dy) const {
    return !kRelu || Normalised(off, scale[i], bias[i]) > 0 ? dy : 0;
  }
};

// dx = scale dy - (x - mean) slope - level, with dy as far as it passes.
template <int kN, bool kRelu>
__device__ __forceinline__ Floats<kN> GradOf(const Passage<kN, kRelu>& passage,
                                             const Floats<kN>& slope, const Floats<kN>& level,
                                             const Floats<kN>& x, const Floats<kN>& dy) {
  Floats<kN> made;
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    const float off = x[i] - passage.mean[i];
    const float flat = fmaf(off, slope[i], level[i]);
    made[i] = fmaf(passage.scale[i], passage.Passed(i, off, dy[i]), -flat);
  }
  return made;
}

}  // namespace trireme::cuda
