#pragma once
#include <cuda_runtime.h>

#include "engine/cuda/numbers.h"
#include "engine/cuda/rows.h"

namespace trireme::cuda {

// Each channel of the rows is a population. Its sums lie in scratch memory of BatchNormDoubles
// doubles: `sums` are those of this shard, `all` is what the channel is normalised by: the same, or
// sums over the shards of all ranks.
struct BatchNormScratch {
  BatchNormScratch(const Rows& rows, double* scratch)
      : sums(scratch),
        others(sums + length(rows) + 1),
        factors(reinterpret_cast<float*>(others + length(rows) + 1)),
        parts(others + length(rows) + 1 + rows.channels) {}
  static size_t length(const Rows& rows) { return 2 * size_t(rows.channels); }
  static size_t doubles(const Rows& rows) {
    return 2 * (length(rows) + 1) + size_t(rows.channels) + rows.parts(2);
  }

  double* sums;    // two for each channel, then the number of rows
  double* others;  // the same over all ranks, if they add up
  float* factors;  // two for each channel
  double* parts;
};

// sums = of x, of x^2. Each chunk's values are centred before they are squared.
void LaunchBatchNormSums(cudaStream_t stream, const Rows& rows, const float* x,
                         const BatchNormScratch& scratch);

// mean, inv_std and what the summand carries (seen) from the sums.
struct BatchNormMeasure {
  const double* all;
  float epsilon;
  float *mean, *inv_std;
  float *seen_mean, *seen_variance;
  const ShardNumbers* numbers;
  bool accumulate;
};
void LaunchBatchNormMeasure(cudaStream_t stream, int channels, const BatchNormMeasure& measure);

// y = (x - mean) inv_std weight + bias, then + residual (unless null), then relu.
struct BatchNormApply {
  const float *x, *mean;
  const float* inv_std;   // or null:
  const float* variance;  // inv_std = 1 / sqrt(variance + epsilon)
  float epsilon;
  const float *weight, *bias, *residual;
  float* y;
  bool relu;
};
void LaunchBatchNormApply(cudaStream_t stream, const Rows& rows, const BatchNormApply& apply);

// Backward, with `relu` through the relu behind, whose result is found again from x. y may not be
// read.
struct BatchNormGrad {
  const float *x, *dy, *mean, *inv_std, *weight, *bias;
  float* dx;  // may be dy
  float *d_weight, *d_bias;
  bool accumulate, relu;
};
// sums = of dy, of dy (x - mean).
void LaunchBatchNormGradSums(cudaStream_t stream, const Rows& rows, const BatchNormGrad& grad,
                             const BatchNormScratch& scratch);
// d_weight and d_bias from the shard's sums, dx with all sums.
void LaunchBatchNormGrad(cudaStream_t stream, const Rows& rows, const BatchNormGrad& grad,
                         const BatchNormScratch& scratch, const double* all);

}  // namespace trireme::cuda
