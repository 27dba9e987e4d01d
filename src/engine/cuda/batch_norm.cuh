#pragma once
#include "engine/cuda/batch_norm.h"
#include "engine/cuda/pack.cuh"

// What kernels of batch-norm have in common.

namespace trireme::cuda {

// What forward computes before the relu; backward finds its sign again, to the bit.
__device__ inline float Normalised(float off, float scale, float bias) {
  return fmaf(off, scale, bias);
}

// The values of a channel: how many there are.
struct Population {
  __host__ __device__ explicit Population(double n) : size(n), share(1 / n) {}
  double size, share;  // 1 / size
};

// `central`: the sum of squares about the mean.
struct ChannelMeasure {
  __device__ ChannelMeasure(const Population& of, double its_mean, double its_central,
                            float epsilon)
      : mean(float(its_mean)), central(its_central < 0 ? 0 : its_central) {
    inv_std = float(rsqrt(central * of.share + double(epsilon)));
  }
  float mean, inv_std;
  double central;
};
// What a summand carries, before this shard.
struct SeenBefore {
  __device__ SeenBefore(const BatchNormMeasure& m, int c)
      : share(m.numbers->statistics_scale),
        mean(m.accumulate ? m.seen_mean[c] : 0),
        variance(m.accumulate ? m.seen_variance[c] : 0) {}
  SeenBefore() = default;
  float share, mean, variance;
};
__device__ inline void StoreMeasure(const BatchNormMeasure& m, int c, const Population& of,
                                    const ChannelMeasure& found, const SeenBefore& before) {
  const double unbiased = found.central / (of.size > 1 ? of.size - 1 : 1);
  m.mean[c] = found.mean;
  m.inv_std[c] = found.inv_std;
  m.seen_mean[c] = before.mean + before.share * found.mean;
  m.seen_variance[c] = before.variance + before.share * float(unbiased);
}
__device__ inline void MeasureChannel(const BatchNormMeasure& m, int c, double n, double mean,
                                      double central) {
  const Population of(n);
  StoreMeasure(m, c, of, ChannelMeasure(of, mean, central, m.epsilon), SeenBefore(m, c));
}

// What to measure values about: a mean of the first rows, of kN channels from `c` on. Sums about it
// lose nothing where the mean is far from 0.
template <int kN, class T>
__device__ Floats<kN> PivotOf(const T* x, size_t rows, int channels, int c) {
  constexpr int kFirst = 4;
  const int looked = rows < kFirst ? int(rows) : kFirst;
  Floats<kN> mean = {};
#pragma unroll
  for (int r = 0; r < kFirst; ++r) {
    const Floats<kN> values = Load<kN>(x + size_t(r < looked ? r : 0) * channels + c);
#pragma unroll
    for (int i = 0; i < kN; ++i) mean[i] += r < looked ? values[i] : 0;
  }
  const float share = 1 / float(looked);
#pragma unroll
  for (int i = 0; i < kN; ++i) mean[i] *= share;
  return mean;
}

// What GradOf subtracts.
struct GradFactor {
  __device__ GradFactor(const BatchNormGrad& g, int c, const Population& of, double sum,
                        double product) {
    const double s = g.inv_std[c], factor = g.weight[c] * s * of.share;
    slope = float(factor * s * s * product);
    level = float(factor * sum);
  }
  float slope, level;
};
__device__ inline void FindFactors(const BatchNormGrad& g, int channels, int c, double n,
                                   double sum, double product, float* factors) {
  const GradFactor factor(g, c, Population(n), sum, product);
  factors[c] = factor.slope;
  factors[channels + c] = factor.level;
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
