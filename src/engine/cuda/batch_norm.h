#pragma once
#include <cuda_runtime.h>

#include "engine/cuda/columns.h"
#include "engine/cuda/numbers.h"

namespace trireme::cuda {

// Each channel of the rows is a population. Its sums lie in scratch memory of `doubles` doubles:
// `sums` are those of this shard; over the shards of all ranks, if they add up, they are `others`.
struct BatchNormScratch {
  BatchNormScratch(const Columns& columns, double* scratch, unsigned* counters)
      : sums(scratch),
        others(sums + length(columns) + 1),
        factors(reinterpret_cast<float*>(others + length(columns) + 1)),
        columns_scratch{reinterpret_cast<float*>(scratch + PartsAt(columns)), counters} {}
  static size_t length(const Columns& columns) { return 2 * size_t(columns.channels); }
  static size_t doubles(const Columns& columns) { return PartsAt(columns) + columns.parts() / 2; }

  double* sums;    // two for each channel, then the number of rows
  double* others;  // the same over all ranks
  float* factors;  // two for each channel
  ColumnScratch columns_scratch;

 private:
  // Behind sums, others and factors; in pieces of 16 bytes.
  static size_t PartsAt(const Columns& columns) {
    return (2 * (length(columns) + 1) + size_t(columns.channels) + 1) / 2 * 2;
  }
};

// What becomes of the sums of x and x^2: mean, inv_std and what the summand carries (seen).
struct BatchNormMeasure {
  float epsilon;
  float *mean, *inv_std;
  float *seen_mean, *seen_variance;
  const ShardNumbers* numbers;
  bool accumulate;
};
// At once from the sums of this shard; or, `apart`, the sums alone, and the rest from all of them.
void LaunchBatchNormSums(cudaStream_t stream, const Columns& columns, const void* x,
                         const BatchNormScratch& scratch, const BatchNormMeasure& measure,
                         bool apart);
void LaunchBatchNormMeasure(cudaStream_t stream, int channels, const double* all,
                            const BatchNormMeasure& measure);

// y = (x - mean) inv_std weight + bias, then + residual (unless null), then relu. x, residual and y
// are held alike. `mask` (or null, and only behind add and relu, with a multiple of eight channels)
// gets a bit for each value: whether it is positive.
struct BatchNormApply {
  const void* x;
  const float* mean;
  const float* inv_std;   // or null:
  const float* variance;  // inv_std = 1 / sqrt(variance + epsilon)
  float epsilon;
  const float *weight, *bias;
  const void* residual;
  void* y;
  bool relu;
  uint8_t* mask = nullptr;
};
void LaunchBatchNormApply(cudaStream_t stream, const Columns& columns, const BatchNormApply& apply);
// With relu and without a residual or a mask: also the sums of what is stored, channel by channel.
void LaunchBatchNormApplyAndSum(cudaStream_t stream, const Columns& columns,
                                const BatchNormApply& apply, float* sums,
                                const BatchNormScratch& scratch);

// Backward, with `relu` through the relu behind, whose result is found again from x. x, dy and dx
// are held alike.
struct BatchNormGrad {
  const void *x, *dy;
  const float *mean, *inv_std, *weight, *bias;
  void* dx;  // may be dy
  float *d_weight, *d_bias;
  bool accumulate, relu;
  size_t population = 0;  // rows that were normalised; 0: those that are summed
};
// Sums of dy and of dy (x - mean); from them at once d_weight, d_bias and the factors; or, `apart`,
// the sums alone, and the rest from all of them.
void LaunchBatchNormGradSums(cudaStream_t stream, const Columns& columns, const BatchNormGrad& grad,
                             const BatchNormScratch& scratch, bool apart);
void LaunchBatchNormGradFactors(cudaStream_t stream, const Columns& columns,
                                const BatchNormGrad& grad, const BatchNormScratch& scratch,
                                const double* all);
// The same where dy is found on the way: a + b where y is positive, or where its mask says so, else
// 0. It is written to `dy` of the gradient; all arrays are held alike.
struct BatchNormSummed {
  const void *a, *b;
  const void* y;        // or null:
  const uint8_t* mask;  // a bit for each value, for a multiple of eight channels
  void* sum;
};
void LaunchBatchNormSummedGradSums(cudaStream_t stream, const Columns& columns,
                                   const BatchNormGrad& grad, const BatchNormSummed& summed,
                                   const BatchNormScratch& scratch, bool apart);
// dx, with the factors.
void LaunchBatchNormGrad(cudaStream_t stream, const Columns& columns, const BatchNormGrad& grad,
                         const BatchNormScratch& scratch);

}  // namespace trireme::cuda
