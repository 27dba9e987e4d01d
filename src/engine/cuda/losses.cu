#include <cmath>

#include "engine/cuda/block.cuh"
#include "engine/cuda/losses.h"
#include "engine/cuda/pack.cuh"

namespace trireme::cuda {
namespace {

// The threads that have a row: a warp, or a block where rows are long. Each has every kSize-th
// class of it.
template <int kSize>
struct Team {
  static_assert(kSize == kWarp || kSize == kThreads);
  static constexpr int kOfBlock = kThreads / kSize;
  static __device__ int Member() { return int(threadIdx.x) % kSize; }

  // Calls f(sample).
  template <class F>
  static __device__ __forceinline__ void ForEachSample(size_t samples, const F& f) {
    const size_t first = blockIdx.x * size_t{kOfBlock} + threadIdx.x / kSize;
#pragma unroll 1
    for (size_t n = first; n < samples; n += gridDim.x * size_t{kOfBlock}) f(n);
  }
  // Over a team, all of whose threads call it and get it.
  template <class F>
  static __device__ __forceinline__ float Reduce(float value, const F& join) {
    value = ReduceWarp(value, join);
    if constexpr (kSize > kWarp) {
      constexpr int kWarps = kSize / kWarp;
      __shared__ float of_warps[kWarps];
      __syncthreads();  // somebody may still read the last ones
      if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
      __syncthreads();
      value = of_warps[0];
#pragma unroll
      for (int w = 1; w < kWarps; ++w) value = join(value, of_warps[w]);
    }
    return value;
  }
  static __device__ __forceinline__ float Sum(float value) {
    return Reduce(value, [](float a, float b) { return a + b; });
  }
};
using Warp = Team<kWarp>;

template <class F>
__device__ __forceinline__ void ForEachClass(int classes, const F& f) {
#pragma unroll 8
  for (int i = Warp::Member(); i < classes; i += kWarp) f(i);
}

unsigned BlocksForSamples(size_t samples, int of_block = Warp::kOfBlock) {
  const size_t blocks = (samples + size_t(of_block) - 1) / size_t(of_block);
  return unsigned(blocks < 65536 ? blocks : 65536);
}

// What a thread has of a row, kHeld classes that are read at once. With kHeld 0 the row is longer,
// and read again.
template <int kHeld, int kSize>
class Row {
 public:
  __device__ __forceinline__ Row(const float* values, int classes)
      : values_(values), classes_(classes) {
#pragma unroll
    for (int u = 0; u < kHeld; ++u) held_[u] = At(u) < classes ? values[At(u)] : 0;
  }
  // Calls f(class, value).
  template <class F>
  __device__ __forceinline__ void ForEach(const F& f) const {
    if constexpr (kHeld == 0) {
      for (int i = At(0); i < classes_; i += kSize) f(i, values_[i]);
    } else {
#pragma unroll
      for (int u = 0; u < kHeld; ++u) {
        if (At(u) < classes_) f(At(u), held_[u]);
      }
    }
  }

 private:
  static __device__ int At(int u) { return Team<kSize>::Member() + u * kSize; }
  const float* values_;
  int classes_;
  float held_[kHeld > 0 ? kHeld : 1];
};
// Calls f with how many classes a thread holds and how many threads have a row, as constants. More
// classes would be more code: to fetch that takes longer than to run it.
template <class F>
void WithRow(int classes, const F& f) {
  if (classes <= kWarp) {
    f(Constant<1>(), Constant<kWarp>());
  } else if (classes <= 4 * kWarp) {
    f(Constant<4>(), Constant<kWarp>());
  } else if (classes <= 4 * kThreads) {
    f(Constant<4>(), Constant<kThreads>());
  } else {
    f(Constant<0>(), Constant<kThreads>());
  }
}

// The classes of a sample, and what the loss against each counts: all of it, or its share if the
// sample is mixed, times the weight of the class.
struct Aims {
  __device__ Aims(const Outputs& o, size_t n) : first(o.labels[n]), second(first) {
    if (o.mixes != nullptr) {
      second = o.mixes[n].other;
      of_second = o.mixes[n].share;
      of_first = 1 - of_second;
    }
    if (o.class_weights != nullptr) {
      of_first *= o.class_weights[first];
      of_second *= o.class_weights[second];
    }
  }
  __device__ float counts() const { return of_first + of_second; }
  int first, second;
  float of_first = 1, of_second = 0;
};

// What the network should have said of a sample, times what that counts: 1 for the label, of which
// smoothing takes a share for all.
struct Target {
  __device__ Target(const Aims& aims, int classes, float smoothing)
      : aims(aims), others(smoothing / float(classes) * aims.counts()), hit(1 - smoothing) {}
  __device__ float operator()(int i) const {
    return others +
           hit * ((i == aims.first ? aims.of_first : 0) + (i == aims.second ? aims.of_second : 0));
  }
  Aims aims;
  float others, hit;
};

template <int kHeld, int kSize>
__global__ void __launch_bounds__(kThreads)
    SoftmaxCrossEntropy(Outputs o, float smoothing, float* losses, float* probabilities) {
  using Members = Team<kSize>;
  Members::ForEachSample(o.samples, [&](size_t n) {
    const Row<kHeld, kSize> row(o.values + n * o.classes, o.classes);
    const Target target(Aims(o, n), o.classes, smoothing);
    float largest = -INFINITY;
    row.ForEach([&](int, float x) { largest = x > largest ? x : largest; });
    largest = Members::Reduce(largest, [](float a, float b) { return a > b ? a : b; });
    float sum = 0;
    row.ForEach([&](int, float x) { sum += expf(x - largest); });
    const float log_sum = largest + logf(Members::Sum(sum));
    float loss = 0;
    row.ForEach([&](int i, float x) {
      loss += target(i) * (log_sum - x);
      probabilities[n * o.classes + i] = expf(x - log_sum);
    });
    loss = Members::Sum(loss);
    if (Members::Member() == 0) losses[n] = loss;
  });
}

template <int kHeld, int kSize, class T>
__global__ void __launch_bounds__(kThreads)
    SoftmaxCrossEntropyGrad(Outputs o, float smoothing, const ShardNumbers* numbers, T* d_logits) {
  Team<kSize>::ForEachSample(o.samples, [&](size_t n) {
    const Row<kHeld, kSize> row(o.values + n * o.classes, o.classes);
    const Target target(Aims(o, n), o.classes, smoothing);
    const float scale = numbers->gradient_scale, counts = target.aims.counts();
    row.ForEach(
        [&](int i, float p) { d_logits[n * o.classes + i] = T((p * counts - target(i)) * scale); });
  });
}

// The sum over both aims of an output's f(error).
template <class F>
__device__ float AgainstAims(const Outputs& o, size_t n, int i, const F& f) {
  const Aims aims(o, n);
  const float value = o.values[n * o.classes + i];
  if (o.classes == 1) return f(value - __int_as_float(aims.first));
  const float sum = f(value - (i == aims.first ? 1 : 0)) * aims.of_first;
  return aims.of_second == 0 ? sum : sum + f(value - (i == aims.second ? 1 : 0)) * aims.of_second;
}

template <Difference kKind>
__global__ void DifferenceOf(Outputs o, float* losses) {
  Warp::ForEachSample(o.samples, [&](size_t n) {
    float loss = 0;
    ForEachClass(o.classes, [&](int i) {
      loss += AgainstAims(o, n, i, [](float error) {
        return kKind == Difference::kSquared ? error * error / 2 : fabsf(error);
      });
    });
    loss = SumWarp(loss);
    if (Warp::Member() == 0) losses[n] = loss;
  });
}

template <Difference kKind>
__global__ void DifferenceGrad(Outputs o, const ShardNumbers* numbers, float* dx) {
  const float scale = numbers->gradient_scale;
  ForEachItem(o.samples * o.classes, [=](size_t at) {
    const size_t n = at / unsigned(o.classes);
    dx[at] = scale * AgainstAims(o, n, int(at % unsigned(o.classes)), [](float error) {
               if (kKind == Difference::kSquared) return error;
               return error > 0 ? 1.0f : error < 0 ? -1.0f : error;  // not a number stays so
             });
  });
}

// The class of the largest logit, the first of equals.
struct Largest {
  float value = -INFINITY;
  int where;
  __device__ explicit Largest(int classes) : where(classes) {}
  __device__ void Look(int classes, int i, float x) {
    if (where < classes && !(x > value)) return;
    value = x;
    where = i;
  }
  __device__ void Join(float other, int other_where) {
    if (!(other > value || (other == value && other_where < where))) return;
    value = other;
    where = other_where;
  }
};
__device__ int PredictedByWarp(const Outputs& o, size_t n) {
  const float* x = o.values + n * o.classes;
  Largest largest(o.classes);
  ForEachClass(o.classes, [&](int i) { largest.Look(o.classes, i, x[i]); });
  for (int half = kWarp / 2; half > 0; half /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, largest.value, half);
    const int other_where = __shfl_xor_sync(0xffffffffu, largest.where, half);
    largest.Join(other, other_where);
  }
  return largest.where;
}
__device__ int PredictedByThread(const Outputs& o, size_t n) {
  const float* x = o.values + n * o.classes;
  Largest largest(o.classes);
#pragma unroll 8
  for (int i = 0; i < o.classes; ++i) largest.Look(o.classes, i, x[i]);
  return largest.where;
}

// The sums over a block of kThreads threads, for its first warp; all call it.
struct TallySums {
  double loss, correct;
  __device__ TallySums AddUp() const {
    __shared__ double of_warps[2][kThreads / kWarp];
    const double of_warp[2] = {SumWarp(loss), SumWarp(correct)};
    __syncthreads();  // somebody may still read the last ones
    if (Warp::Member() == 0) {
      for (int k = 0; k < 2; ++k) of_warps[k][threadIdx.x / kWarp] = of_warp[k];
    }
    __syncthreads();
    TallySums sums = {};
#pragma unroll
    for (int w = 0; w < kThreads / kWarp; ++w) {
      sums.loss += of_warps[0][w];
      sums.correct += of_warps[1][w];
    }
    return sums;
  }
};

// Rows are read by warps or, if kByThread, by threads. Sums have one order: the block that ends
// last adds up those of all.
template <bool kByThread>
__global__ void __launch_bounds__(kThreads) TallyUp(Outputs o, Tally t) {
  TallySums sums = {};
  const auto count = [&](size_t n, int predicted) {
    sums.loss += t.losses[n];
    sums.correct += o.classes > 1 && predicted == o.labels[n];
  };
  if constexpr (kByThread) {
    ForEachItem(o.samples, [&](size_t n) { count(n, PredictedByThread(o, n)); });
  } else {
    Warp::ForEachSample(o.samples, [&](size_t n) {
      const int predicted = PredictedByWarp(o, n);
      if (Warp::Member() == 0) count(n, predicted);
    });
  }
  sums = sums.AddUp();
  if (gridDim.x > 1) {
    if (threadIdx.x == 0) {
      t.parts[2 * blockIdx.x] = sums.loss;
      t.parts[2 * blockIdx.x + 1] = sums.correct;
    }
    if (!IsLastBlock(t.counter, gridDim.x)) return;
    sums = {};
    if (threadIdx.x < gridDim.x) {
      sums = {__ldcg(t.parts + 2 * threadIdx.x), __ldcg(t.parts + 2 * threadIdx.x + 1)};
    }
    sums = sums.AddUp();
  }
  if (threadIdx.x != 0) return;
  const float add[3] = {float(sums.loss * t.numbers->loss_scale), float(sums.correct),
                        t.numbers->vote};
  for (int i = 0; i < 3; ++i) t.metrics[i] = (t.accumulate ? t.metrics[i] : 0) + add[i];
}

}  // namespace

void LaunchSoftmaxCrossEntropy(cudaStream_t stream, const Outputs& logits, float smoothing,
                               float* losses, float* probabilities) {
  WithRow(logits.classes, [&](auto held, auto size) {
    const unsigned blocks = BlocksForSamples(logits.samples, Team<size.value>::kOfBlock);
    SoftmaxCrossEntropy<held.value, size.value>
        <<<blocks, kThreads, 0, stream>>>(logits, smoothing, losses, probabilities);
  });
}

void LaunchSoftmaxCrossEntropyGrad(cudaStream_t stream, const Outputs& probabilities,
                                   float smoothing, const ShardNumbers* numbers, Array d_logits) {
  WithRow(probabilities.classes, [&](auto held, auto size) {
    const unsigned blocks = BlocksForSamples(probabilities.samples, Team<size.value>::kOfBlock);
    WithElement(d_logits.element, [&](auto zero) {
      SoftmaxCrossEntropyGrad<held.value, size.value><<<blocks, kThreads, 0, stream>>>(
          probabilities, smoothing, numbers, As<decltype(zero)>(d_logits));
    });
  });
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
  constexpr size_t kOfThread = 4;  // short rows that are not worth another block
  const auto blocks = [](size_t wanted) {
    const size_t most = wanted < Tally::kMostBlocks ? wanted : Tally::kMostBlocks;
    return unsigned(most > 0 ? most : 1);
  };
  if (logits.classes <= kWarp) {
    const size_t of_block = kThreads * kOfThread;
    TallyUp<true><<<blocks((logits.samples + of_block - 1) / of_block), kThreads, 0, stream>>>(
        logits, tally);
  } else {
    TallyUp<false>
        <<<blocks(BlocksForSamples(logits.samples)), kThreads, 0, stream>>>(logits, tally);
  }
}

}  // namespace trireme::cuda
