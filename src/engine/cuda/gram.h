#pragma once
#include "engine/cuda/array.h"
#include "engine/cuda/batch_norm.h"

// Small kernels around the products of gram_norms.cc. There y[rows][out] = x[rows][in] W[in][out],
// and y is normalised per column. `centred` is x^T x less rows times its means; `covariant` are the
// products of x with y less its mean, centred W; `sums` those of x. All three are float32. Weights
// and what becomes of them are held as products want them.

namespace trireme::cuda {

struct GramSizes {
  size_t rows;
  int in, out;
  constexpr size_t weights() const { return size_t(in) * size_t(out); }
};

// gram[in][in] -> centred, in place; the sums as those that are kept, which may be the same; and
// the weights as float32 (`wide`).
void LaunchGramCentre(cudaStream_t stream, const GramSizes& sizes, const float* sums,
                      float* kept_sums, float* gram, Array weights, float* wide);

// Mean and inv_std of y; or, `apart`, its sums, as LaunchBatchNormSums leaves them.
void LaunchGramMeasure(cudaStream_t stream, const GramSizes& sizes, Array weights,
                       const float* covariant, const float* sums, double* sums_of_y,
                       const BatchNormMeasure& measure, bool apart);

// scaled = W weight inv_std and shift, such that x scaled + shift is y normalised. What the weights
// lose by rounding is made good in the shift as far as it is the same in all rows.
struct GramScale {
  Array weights;
  const float* sums;
  const float *mean, *inv_std, *weight, *bias;
  Array scaled;
  Array shift;  // of `out` numbers, held as results are
};
void LaunchGramScale(cudaStream_t stream, const GramSizes& sizes, const GramScale& scale);

// Sums over the columns of dy, in double; the second finds dy on the way, and writes it.
void LaunchGramGradColumns(cudaStream_t stream, const Columns& columns, const void* dy,
                           const BatchNormScratch& scratch);
void LaunchGramGradColumns(cudaStream_t stream, const Columns& columns,
                           const BatchNormSummed& summed, const BatchNormScratch& scratch);

// Backward from dy and `products` = x^T dy [in][out]. `off` [out]: how far the mean of y lies from
// the mean that it was normalised with, which is another one if shards add up.
struct GramGrad {
  Array weights;
  const float *sums, *covariant, *products;
  float* off;
  float* d_weights;  // of the convolution
  // dx = (x bent^T + centre) + dy scaled^T + shift. `scaled` [in][out]; `slopes` [in][out]: W times
  // what y is multiplied by; `bend` [in][in] = slopes W^T, and rounded `bent`.
  Array scaled, slopes;
  const float* bend;
  Array bent;
  // Of `in` numbers, held as dx; and the same in float32.
  Array centre, shift;
  float *wide_centre, *wide_shift;
};
// From the sums of dy: gradients of scale and shift of the norm, and its factors; or, `apart`, the
// sums alone, for LaunchBatchNormGradFactors.
void LaunchGramGradSums(cudaStream_t stream, const GramSizes& sizes, const GramGrad& gram,
                        const BatchNormGrad& norm, const BatchNormScratch& scratch, bool apart);
// d_weights, scaled, slopes.
void LaunchGramGradWeights(cudaStream_t stream, const GramSizes& sizes, const GramGrad& gram,
                           const BatchNormGrad& norm, const BatchNormScratch& scratch);
// bent, centre and shift.
void LaunchGramGradShift(cudaStream_t stream, const GramSizes& sizes, const GramGrad& gram,
                         const BatchNormGrad& norm, const BatchNormScratch& scratch);

}  // namespace trireme::cuda
