#include "engine/cuda/batch_norm.h"
#include "engine/cuda/launch.cuh"
#include "engine/cuda/rows.cuh"

namespace trireme::cuda {
namespace {

// About the chunk's mean, which need not be exact: what it is off by is summed up as well.
__global__ void MeasureChunks(Rows r, const float* x, double* parts) {
  __shared__ float shared[3][kDown][kAcross];
  const int c = int(blockIdx.x * kAcross + threadIdx.x);
  float rough = 0;
  ForEachOfChunk(r, c, [&](size_t at) { rough += x[at]; });
  const float pivot = SumDown(rough, shared[0]) / float(LengthOfChunk(r));
  float sum = 0, square = 0;
  ForEachOfChunk(r, c, [&](size_t at) {
    const float off = x[at] - pivot;
    sum += off;
    square = fmaf(off, off, square);
  });
  sum = SumDown(sum, shared[1]);
  square = SumDown(square, shared[2]);
  if (threadIdx.y != 0 || c >= r.channels) return;
  // In double the plain sums of squares lose nothing that matters.
  const double n = double(LengthOfChunk(r)), m = pivot;
  double* part = parts + size_t(blockIdx.y) * 2 * r.channels;
  part[c] = n * m + sum;
  part[r.channels + c] = square + 2 * m * sum + n * m * m;
}

__global__ void Measure(int channels, BatchNormMeasure m) {
  const float share = m.numbers->statistics_scale;
  ForEachItem(channels, [=](size_t c) {
    const double n = m.all[2 * channels], mean = m.all[c] / n;
    const double found = m.all[channels + c] - n * mean * mean;
    const double square = found < 0 ? 0 : found;
    const double unbiased = square / (n > 1 ? n - 1 : 1);
    m.mean[c] = float(mean);
    m.inv_std[c] = float(1 / sqrt(square / n + double(m.epsilon)));
    m.seen_mean[c] = (m.accumulate ? m.seen_mean[c] : 0) + share * float(mean);
    m.seen_variance[c] = (m.accumulate ? m.seen_variance[c] : 0) + share * float(unbiased);
  });
}

// What forward computes before the relu; backward finds its sign again, to the bit.
__device__ float Normalised(float off, float scale, float bias) { return fmaf(off, scale, bias); }

__global__ void Apply(size_t size, int channels, BatchNormApply a) {
  ForEachItem(size, [=](size_t i) {
    const size_t c = i % unsigned(channels);
    const float inv_std = a.inv_std ? a.inv_std[c] : 1 / sqrtf(a.variance[c] + a.epsilon);
    float y = Normalised(a.x[i] - a.mean[c], inv_std * a.weight[c], a.bias[c]);
    if (a.residual) y += a.residual[i];
    a.y[i] = a.relu && !(y > 0) ? 0 : y;
  });
}

// dy where the relu behind let y pass; without one, dy.
__device__ float Passed(const BatchNormGrad& g, size_t c, float off, float dy) {
  if (!g.relu) return dy;
  return Normalised(off, g.inv_std[c] * g.weight[c], g.bias[c]) > 0 ? dy : 0;
}

__global__ void GradChunks(Rows r, BatchNormGrad g, double* parts) {
  __shared__ float shared[2][kDown][kAcross];
  const int c = int(blockIdx.x * kAcross + threadIdx.x);
  float sum = 0, product = 0;
  ForEachOfChunk(r, c, [&](size_t at) {
    const float off = g.x[at] - g.mean[c], dy = Passed(g, c, off, g.dy[at]);
    sum += dy;
    product = fmaf(dy, off, product);
  });
  sum = SumDown(sum, shared[0]);
  product = SumDown(product, shared[1]);
  if (threadIdx.y != 0 || c >= r.channels) return;
  double* part = parts + size_t(blockIdx.y) * 2 * r.channels;
  part[c] = sum;
  part[r.channels + c] = product;
}

// Gradients of the parameters; factors = slope, then level: dx = scale dy - (x - mean) slope -
// level.
__global__ void GradFactors(int channels, BatchNormGrad g, const double* sums, const double* all,
                            float* factors) {
  ForEachItem(channels, [=](size_t c) {
    const double n = all[2 * channels], s = g.inv_std[c], factor = g.weight[c] * s;
    g.d_weight[c] = (g.accumulate ? g.d_weight[c] : 0) + float(sums[channels + c] * s);
    g.d_bias[c] = (g.accumulate ? g.d_bias[c] : 0) + float(sums[c]);
    factors[c] = float(factor * s * s * all[channels + c] / n);
    factors[channels + c] = float(factor * all[c] / n);
  });
}

__global__ void GradApply(size_t size, int channels, BatchNormGrad g, const float* factors) {
  ForEachItem(size, [=](size_t i) {
    const size_t c = i % unsigned(channels);
    const float off = g.x[i] - g.mean[c], dy = Passed(g, c, off, g.dy[i]);
    const float flat = fmaf(off, factors[c], factors[channels + c]);
    g.dx[i] = fmaf(g.inv_std[c] * g.weight[c], dy, -flat);
  });
}

}  // namespace

void LaunchBatchNormSums(cudaStream_t stream, const Rows& r, const float* x,
                         const BatchNormScratch& scratch) {
  MeasureChunks<<<ChunkGrid(r), ChunkBlock(), 0, stream>>>(r, x, scratch.parts);
  LaunchSumParts(stream, r, 2 * r.channels, scratch.parts, scratch.sums);
}

void LaunchBatchNormMeasure(cudaStream_t stream, int channels, const BatchNormMeasure& measure) {
  Measure<<<BlocksFor(channels), kThreads, 0, stream>>>(channels, measure);
}

void LaunchBatchNormApply(cudaStream_t stream, const Rows& r, const BatchNormApply& apply) {
  const size_t size = r.rows * r.channels;
  Apply<<<BlocksFor(size), kThreads, 0, stream>>>(size, r.channels, apply);
}

void LaunchBatchNormGradSums(cudaStream_t stream, const Rows& r, const BatchNormGrad& grad,
                             const BatchNormScratch& scratch) {
  GradChunks<<<ChunkGrid(r), ChunkBlock(), 0, stream>>>(r, grad, scratch.parts);
  LaunchSumParts(stream, r, 2 * r.channels, scratch.parts, scratch.sums);
}

void LaunchBatchNormGrad(cudaStream_t stream, const Rows& r, const BatchNormGrad& grad,
                         const BatchNormScratch& scratch, const double* all) {
  const size_t size = r.rows * r.channels;
  GradFactors<<<BlocksFor(r.channels), kThreads, 0, stream>>>(r.channels, grad, scratch.sums, all,
                                                              scratch.factors);
  GradApply<<<BlocksFor(size), kThreads, 0, stream>>>(size, r.channels, grad, scratch.factors);
}

}  // namespace trireme::cuda
