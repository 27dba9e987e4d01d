#include <cmath>

#include "engine/cuda/block.cuh"
#include "engine/cuda/losses.h"

namespace trireme::cuda {
namespace {

constexpr int kWarpsOfBlock = kThreads / kWarp;

// Warps take a sample at a time, their threads every 32nd class.
template <class F>
__device__ void ForEachSample(size_t samples, const F& f) {
  const size_t first = size_t{blockIdx.x} * kWarpsOfBlock + threadIdx.x / kWarp;
  for (size_t n = first; n < samples; n += size_t{gridDim.x} * kWarpsOfBlock) f(n);
}
template <class F>
__device__ void ForEachClass(int classes, const F& f) {
  for (int i = int(threadIdx.x % kWarp); i < classes; i += kWarp) f(i);
}
__device__ bool IsFirstOfWarp() { return threadIdx.x % kWarp == 0; }

unsigned BlocksForSamples(size_t samples) {
  const size_t blocks = (samples + kWarpsOfBlock - 1) / kWarpsOfBlock;
  return unsigned(blocks < 65536 ? blocks : 65536);
}

// What the network should have said: 1 for the label, of which smoothing takes a share for all.
__device__ float Target(const Outputs& o, size_t n, int i, float smoothing) {
  return (i == o.labels[n] ? 1 - smoothing : 0) + smoothing / float(o.classes);
}

// What the loss of a sample counts.
__device__ float WeightOf(const Outputs& o, size_t n) {
  return o.class_weights == nullptr ? 1.0f : o.class_weights[o.labels[n]];
}

__global__ void SoftmaxCrossEntropy(Outputs o, float smoothing, float* losses,
                                    float* probabilities) {
  ForEachSample(o.samples, [&](size_t n) {
    const float* x = o.values + n * o.classes;
    float largest = -INFINITY;
    ForEachClass(o.classes, [&](int i) { largest = x[i] > largest ? x[i] : largest; });
    largest = ReduceWarp(largest, [](float a, float b) { return a > b ? a : b; });
    float sum = 0;
    ForEachClass(o.classes, [&](int i) { sum += expf(x[i] - largest); });
    const float log_sum = largest + logf(SumWarp(sum));
    float loss = 0;
    ForEachClass(o.classes, [&](int i) {
      loss += Target(o, n, i, smoothing) * (log_sum - x[i]);
      probabilities[n * o.classes + i] = expf(x[i] - log_sum);
    });
    loss = SumWarp(loss);
    if (IsFirstOfWarp()) losses[n] = loss * WeightOf(o, n);
  });
}

__global__ void SoftmaxCrossEntropyGrad(Outputs o, float smoothing, const ShardNumbers* numbers,
                                        float* d_logits) {
  const float loss_scale = numbers->loss_scale;
  ForEachItem(o.samples * o.classes, [=](size_t at) {
    const size_t n = at / unsigned(o.classes);
    const int i = int(at % unsigned(o.classes));
    d_logits[at] = (o.values[at] - Target(o, n, i, smoothing)) * (loss_scale * WeightOf(o, n));
  });
}

__device__ float ErrorOf(const Outputs& o, size_t n, int i) {
  const float target = o.classes == 1 ? __int_as_float(o.labels[n]) : i == o.labels[n] ? 1 : 0;
  return o.values[n * o.classes + i] - target;
}

template <Difference kKind>
__global__ void DifferenceOf(Outputs o, float* losses) {
  ForEachSample(o.samples, [&](size_t n) {
    float loss = 0;
    ForEachClass(o.classes, [&](int i) {
      const float error = ErrorOf(o, n, i);
      loss += kKind == Difference::kSquared ? error * error / 2 : fabsf(error);
    });
    loss = SumWarp(loss);
    if (IsFirstOfWarp()) losses[n] = loss * WeightOf(o, n);
  });
}

template <Difference kKind>
__global__ void DifferenceGrad(Outputs o, const ShardNumbers* numbers, float* dx) {
  const float loss_scale = numbers->loss_scale;
  ForEachItem(o.samples * o.classes, [=](size_t at) {
    const size_t n = at / unsigned(o.classes);
    const float error = ErrorOf(o, n, int(at % unsigned(o.classes)));
    const float sign = error > 0 ? 1 : error < 0 ? -1 : error;  // not a number stays so
    dx[at] = (kKind == Difference::kSquared ? error : sign) * (loss_scale * WeightOf(o, n));
  });
}

// The class of the largest logit, the first of equals.
__device__ int Predicted(const Outputs& o, size_t n) {
  const float* x = o.values + n * o.classes;
  float largest = -INFINITY;
  int where = o.classes;
  ForEachClass(o.classes, [&](int i) {
    if (where < o.classes && !(x[i] > largest)) return;
    largest = x[i];
    where = i;
  });
  for (int half = kWarp / 2; half > 0; half /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, largest, half);
    const int other_where = __shfl_xor_sync(0xffffffffu, where, half);
    if (other > largest || (other == largest && other_where < where)) {
      largest = other;
      where = other_where;
    }
  }
  return where;
}

// Sums have one order: the block that ends last adds up those of all.
__global__ void TallyUp(Outputs o, Tally t) {
  double loss = 0, correct = 0;
  ForEachSample(o.samples, [&](size_t n) {
    const int predicted = Predicted(o, n);
    if (!IsFirstOfWarp()) return;
    loss += t.losses[n];
    correct += o.classes > 1 && predicted == o.labels[n];
  });
  loss = SumBlock(loss);
  correct = SumBlock(correct);
  if (gridDim.x > 1) {
    if (threadIdx.x == 0) {
      t.parts[2 * blockIdx.x] = loss;
      t.parts[2 * blockIdx.x + 1] = correct;
    }
    if (!IsLastBlock(t.counter, gridDim.x)) return;
    const bool has = threadIdx.x < gridDim.x;
    loss = SumBlock(has ? __ldcg(t.parts + 2 * threadIdx.x) : 0);
    correct = SumBlock(has ? __ldcg(t.parts + 2 * threadIdx.x + 1) : 0);
  }
  if (threadIdx.x != 0) return;
  const float add[3] = {float(loss * t.numbers->loss_scale), float(correct), t.numbers->vote};
  for (int i = 0; i < 3; ++i) t.metrics[i] = (t.accumulate ? t.metrics[i] : 0) + add[i];
}

}  // namespace

void LaunchSoftmaxCrossEntropy(cudaStream_t stream, const Outputs& logits, float smoothing,
                               float* losses, float* probabilities) {
  SoftmaxCrossEntropy<<<BlocksForSamples(logits.samples), kThreads, 0, stream>>>(
      logits, smoothing, losses, probabilities);
}

void LaunchSoftmaxCrossEntropyGrad(cudaStream_t stream, const Outputs& probabilities,
                                   float smoothing, const ShardNumbers* numbers, float* d_logits) {
  const size_t size = probabilities.samples * probabilities.classes;
  SoftmaxCrossEntropyGrad<<<BlocksFor(size), kThreads, 0, stream>>>(probabilities, smoothing,
                                                                    numbers, d_logits);
}

void LaunchDifference(cudaStream_t stream, Difference kind, const Outputs& outputs, float* losses) {
  const auto launch = kind == Difference::kSquared ? DifferenceOf<Difference::kSquared>
                                                   : DifferenceOf<Difference::kAbsolute>;
  launch<<<BlocksForSamples(outputs.samples), kThreads, 0, stream>>>(outputs, losses);
}

void LaunchDifferenceGrad(cudaStream_t stream, Difference kind, const Outputs& outputs,
                          const ShardNumbers* numbers, float* dx) {
  const size_t size = outputs.samples * outputs.classes;
  const auto launch = kind == Difference::kSquared ? DifferenceGrad<Difference::kSquared>
                                                   : DifferenceGrad<Difference::kAbsolute>;
  launch<<<BlocksFor(size), kThreads, 0, stream>>>(outputs, numbers, dx);
}

void LaunchTally(cudaStream_t stream, const Outputs& logits, const Tally& tally) {
  static_assert(Tally::kMostBlocks <= kThreads);
  constexpr size_t kOfBlock = 4096;  // logits that are not worth another one
  const size_t most = BlocksForSamples(logits.samples);
  size_t blocks = 1 + logits.samples * size_t(logits.classes) / kOfBlock;
  blocks = blocks < most ? blocks : most > 0 ? most : 1;
  blocks = blocks < Tally::kMostBlocks ? blocks : Tally::kMostBlocks;
  TallyUp<<<unsigned(blocks), kThreads, 0, stream>>>(logits, tally);
}

}  // namespace trireme::cuda
