// One pass over memory each. Multiply-adds are written out (CMakeLists.txt forbids others).
#include <cstdint>

#include "engine/cuda/flat.h"
#include "engine/cuda/launch.cuh"
#include "engine/cuda/pack.cuh"
#include "flat/digest.h"

namespace trireme::cuda {
namespace {

constexpr size_t kMostBlocks = 16384;  // further elements are for another turn of each thread

template <class F>
__global__ void __launch_bounds__(kThreads) Each(size_t n, F f) {
  const size_t step = size_t(gridDim.x) * kThreads;
  for (size_t i = size_t(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) f(i);
}

template <class F>
void ForEach(cudaStream_t stream, size_t n, F f) {
  if (n == 0) return;
  const size_t blocks = (n + kThreads - 1) / kThreads;
  Each<<<unsigned(blocks < kMostBlocks ? blocks : kMostBlocks), kThreads, 0, stream>>>(n, f);
}

// One column of blocks for each range. Integers are the same in whichever order they are added up.
__global__ void __launch_bounds__(kThreads)
    AddDigests(const float* from, RangeList ranges, unsigned long long* digests) {
  const Range range = ranges.items[blockIdx.y];
  const float* const values = from + range.begin;
  unsigned long long sum = 0;
  const size_t words = (range.size + 1) / 2, step = size_t(gridDim.x) * kThreads;
  for (size_t w = size_t(blockIdx.x) * kThreads + threadIdx.x; w < words; w += step) {
    const unsigned second = 2 * w + 1 < range.size ? __float_as_uint(values[2 * w + 1]) : 0;
    sum += DigestTerm(WordOf(__float_as_uint(values[2 * w]), second), w);
  }
  atomicAdd(&digests[blockIdx.y], sum);
}

// ---- CheckAndClip

// Without its sign a float orders like an integer, with infinity and NaN above all finite values.
__device__ unsigned Magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }
constexpr unsigned kInfinite = 0x7f800000u;

// Of all threads of a block, for thread 0; always in the same order.
template <class T, class Combine>
__device__ T OfBlock(T own, Combine combine) {
  __shared__ T values[kThreads];
  values[threadIdx.x] = own;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
    }
    __syncthreads();
  }
  return values[0];
}

struct Sum {
  __device__ double operator()(double a, double b) const { return a + b; }
};
struct Larger {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return a > b ? a : b; }
};

// Each block's share: the sum of squares in double, where no finite floats overflow, and the
// largest magnitude of what is not squared.
template <bool kSquares>
__global__ void __launch_bounds__(kThreads) Look(Looked at, double* squares, unsigned* largest) {
  const size_t first = size_t(blockIdx.x) * kThreads + threadIdx.x;
  const size_t step = size_t(gridDim.x) * kThreads;
  double sum = 0;
  unsigned most = 0;
  const auto look = [&](float x) {
    if (kSquares) {
      sum += double(x) * double(x);
    } else {
      most = Larger()(most, Magnitude(x));
    }
  };
  if (kSquares || !at.known_finite) {
    constexpr int kN = 2 * kPack<float>, kUnroll = 4;
    const size_t packs = reinterpret_cast<uintptr_t>(at.gradients) % 16 == 0 ? at.count / kN : 0;
    size_t p = first;
    for (; p + (kUnroll - 1) * step < packs; p += kUnroll * step) {
      Raw<kN, float> fetched[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) fetched[u] = Fetch<kN>(at.gradients + (p + u * step) * kN);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const Floats<kN> values = Widen(fetched[u]);
#pragma unroll
        for (int i = 0; i < kN; ++i) look(values[i]);
      }
    }
    for (; p < packs; p += step) {
      const Floats<kN> values = Load<kN>(at.gradients + p * kN);
#pragma unroll
      for (int i = 0; i < kN; ++i) look(values[i]);
    }
    for (size_t i = packs * kN + first; i < at.count; i += step) look(at.gradients[i]);
  }
  for (size_t i = first; i < at.statistics_count; i += step) {
    most = Larger()(most, Magnitude(at.statistics[i]));
  }
  if (kSquares) sum = OfBlock(sum, Sum());
  most = OfBlock(most, Larger());
  if (threadIdx.x > 0) return;
  squares[blockIdx.x] = sum;
  largest[blockIdx.x] = most;
}

__global__ void __launch_bounds__(kThreads)
    JudgeParts(const double* squares, const unsigned* largest, unsigned parts, float clip,
               LossScaling loss, float* scale) {
  double sum = 0;
  unsigned most = 0;
  for (unsigned i = threadIdx.x; i < parts; i += kThreads) {
    sum += squares[i];
    most = Larger()(most, largest[i]);
  }
  sum = OfBlock(sum, Sum());
  most = OfBlock(most, Larger());
  if (threadIdx.x > 0) return;
  const double norm = clip > 0 ? sqrt(sum) : 0;
  Judge(loss, isfinite(norm) && most < kInfinite, clip, norm, scale);
}

// ---- Dot

// Blocks that share a sum of n values: by n alone, so its bits do not depend on the card.
unsigned PartsOf(size_t n) {
  constexpr size_t kOfBlock = kThreads * 16;
  const size_t parts = (n + kOfBlock - 1) / kOfBlock;
  return unsigned(parts < 1 ? 1 : parts < kMostParts ? parts : kMostParts);
}

__global__ void __launch_bounds__(kThreads)
    MultiplyAndAdd(const float* x, const float* y, size_t n, double* sums) {
  const size_t step = size_t(gridDim.x) * kThreads;
  double sum = 0;
  for (size_t i = size_t(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
    sum += double(x[i]) * double(y[i]);
  }
  sum = OfBlock(sum, Sum());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads) AddUp(const double* sums, unsigned parts, double* out) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < parts; i += kThreads) sum += sums[i];
  sum = OfBlock(sum, Sum());
  if (threadIdx.x == 0) *out = sum;
}

// ---- updates

// How weight decay enters: not at all, as a part of the gradient, or straight at the weight.
enum class Decay { kNone, kGradient, kWeight };

// step(seen, decay, weight, kept...) changes a weight and what is kept of it; nothing moves when
// the factor is 0. A thread takes kN weights at once.
template <int kN, Decay kDecay, class Step, class... Kept>
__global__ void __launch_bounds__(kThreads) UpdateAll(Updated on, Step step, Kept*... kept) {
  const float factor = on.scale[UpdateScale::kFactor];
  if (factor == 0) return;
  const size_t turn = size_t(gridDim.x) * kThreads, packs = on.n / kN;
  for (size_t p = size_t(blockIdx.x) * kThreads + threadIdx.x; p < packs; p += turn) {
    const size_t at = p * kN;
    const Floats<kN> gradients = Load<kN>(on.gradient + at);
    Floats<kN> weights = Load<kN>(on.weight + at);
    const float decay = kDecay == Decay::kNone ? 0 : on.decays[at / Layout::kAlignment];
    const auto all = [&](auto... packs_kept) {
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        const float scaled = __fmul_rn(factor, gradients[i]);
        const float seen =
            kDecay == Decay::kGradient ? __fmaf_rn(decay, weights[i], scaled) : scaled;
        step(seen, decay, weights[i], packs_kept[i]...);
      }
      (Store<kN>(kept + at, packs_kept), ...);
    };
    all(Load<kN>(kept + at)...);
    Store<kN>(on.weight + at, weights);
  }
}

template <Decay kDecay, class Step, class... Kept>
void UpdateEach(cudaStream_t stream, const Updated& on, const Step& step, Kept*... kept) {
  if (on.n == 0) return;
  constexpr int kN = kPack<float>;
  static_assert(Layout::kAlignment % kN == 0);
  const auto in_packs = [](const void* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; };
  const bool packs =
      on.n % kN == 0 && in_packs(on.gradient) && in_packs(on.weight) && (in_packs(kept) && ...);
  const size_t blocks = (on.n / (packs ? kN : 1) + kThreads - 1) / kThreads;
  const auto update =
      packs ? UpdateAll<kN, kDecay, Step, Kept...> : UpdateAll<1, kDecay, Step, Kept...>;
  update<<<unsigned(blocks < kMostBlocks ? blocks : kMostBlocks), kThreads, 0, stream>>>(on, step,
                                                                                         kept...);
}

template <Decay kDecay>
void Sgd(cudaStream_t stream, const SgdRates& r, const Updated& on, float* velocity) {
  if (r.momentum == 0) {
    return UpdateEach<kDecay>(stream, on, [=] __device__(float seen, float, float& weight) {
      weight = __fmaf_rn(-r.rate, seen, weight);
    });
  }
  const auto step = [=] __device__(float seen, float, float& weight, float& v) {
    v = __fmaf_rn(r.momentum, v, seen);
    weight = __fmaf_rn(-r.rate, r.nesterov ? __fmaf_rn(r.momentum, v, seen) : v, weight);
  };
  UpdateEach<kDecay>(stream, on, step, velocity);
}

template <Decay kDecay>
void Adam(cudaStream_t stream, const AdamRates& r, const Updated& on, float* mean, float* square) {
  const auto step = [=] __device__(float seen, float decay, float& weight, float& m, float& s) {
    m = __fmaf_rn(r.beta1, m, __fmul_rn(r.rest1, seen));
    s = __fmaf_rn(r.beta2, s, __fmul_rn(__fmul_rn(r.rest2, seen), seen));
    const float spread = __fmaf_rn(r.root, __fsqrt_rn(s), r.epsilon);
    if (kDecay == Decay::kWeight) weight = __fmaf_rn(-__fmul_rn(r.shrink, decay), weight, weight);
    weight = __fmaf_rn(-r.rate, __fdiv_rn(m, spread), weight);
  };
  UpdateEach<kDecay>(stream, on, step, mean, square);
}

template <Decay kDecay>
void Adagrad(cudaStream_t stream, const AdagradRates& r, const Updated& on, float* sum) {
  const auto step = [=] __device__(float seen, float, float& weight, float& s) {
    s = __fmaf_rn(seen, seen, s);
    const float spread = __fadd_rn(__fsqrt_rn(s), r.epsilon);
    weight = __fmaf_rn(-r.rate, __fdiv_rn(seen, spread), weight);
  };
  UpdateEach<kDecay>(stream, on, step, sum);
}

}  // namespace

void LaunchFill(cudaStream_t stream, float value, float* to, size_t n) {
  ForEach(stream, n, [=] __device__(size_t i) { to[i] = value; });
}

void LaunchAdd(cudaStream_t stream, const float* from, float* to, size_t n) {
  ForEach(stream, n, [=] __device__(size_t i) { to[i] = __fadd_rn(to[i], from[i]); });
}

void LaunchBlend(cudaStream_t stream, float a, const float* x, float b, float* y, size_t n) {
  ForEach(stream, n, [=] __device__(size_t i) { y[i] = __fmaf_rn(a, x[i], __fmul_rn(b, y[i])); });
}

void LaunchScale(cudaStream_t stream, float a, float* x, size_t n) {
  ForEach(stream, n, [=] __device__(size_t i) { x[i] = __fmul_rn(a, x[i]); });
}

void LaunchSumInOrder(cudaStream_t stream, const float* start, const Summands& summands, float* out,
                      size_t n) {
  const Summands s = summands;
  ForEach(stream, n, [=] __device__(size_t i) {
    float sum = start[i];
    for (size_t p = 0; p < s.count; ++p) sum = __fadd_rn(sum, s.parts[p][i]);
    out[i] = sum;
  });
}

void LaunchElasticPull(cudaStream_t stream, float alpha, const float* centre, float* weights,
                       float* pull, size_t n) {
  ForEach(stream, n, [=] __device__(size_t i) {
    const float by = __fmul_rn(alpha, __fsub_rn(weights[i], centre[i]));
    pull[i] = by;
    weights[i] = __fsub_rn(weights[i], by);
  });
}

void LaunchCheckAndClip(cudaStream_t stream, const Looked& looked, float clip,
                        const LossScaling& loss, double* sums, float* scale) {
  const unsigned parts = PartsOf(looked.count);
  auto* const largest = reinterpret_cast<unsigned*>(sums + kMostParts);
  if (clip > 0) {
    Look<true><<<parts, kThreads, 0, stream>>>(looked, sums, largest);
  } else {
    Look<false><<<parts, kThreads, 0, stream>>>(looked, sums, largest);
  }
  JudgeParts<<<1, kThreads, 0, stream>>>(sums, largest, parts, clip, loss, scale);
}

void LaunchDot(cudaStream_t stream, const float* x, const float* y, size_t n, double* sums,
               double* dot) {
  const unsigned parts = PartsOf(n);
  MultiplyAndAdd<<<parts, kThreads, 0, stream>>>(x, y, n, sums);
  AddUp<<<1, kThreads, 0, stream>>>(sums, parts, dot);
}

void LaunchUpdate(cudaStream_t stream, const SgdRates& r, const Updated& on, float* velocity) {
  on.decays ? Sgd<Decay::kGradient>(stream, r, on, velocity)
            : Sgd<Decay::kNone>(stream, r, on, velocity);
}

void LaunchUpdate(cudaStream_t stream, const AdamRates& r, const Updated& on, float* mean,
                  float* square) {
  if (!on.decays) return Adam<Decay::kNone>(stream, r, on, mean, square);
  r.decoupled ? Adam<Decay::kWeight>(stream, r, on, mean, square)
              : Adam<Decay::kGradient>(stream, r, on, mean, square);
}

void LaunchUpdate(cudaStream_t stream, const AdagradRates& r, const Updated& on, float* sum) {
  on.decays ? Adagrad<Decay::kGradient>(stream, r, on, sum)
            : Adagrad<Decay::kNone>(stream, r, on, sum);
}

void LaunchTrack(cudaStream_t stream, float momentum, const float* scale, const float* seen,
                 float* running, size_t n) {
  ForEach(stream, n, [=] __device__(size_t i) {
    if (scale[UpdateScale::kFactor] == 0) return;
    running[i] = __fmaf_rn(momentum, __fsub_rn(seen[i], running[i]), running[i]);
  });
}

void LaunchDigest(cudaStream_t stream, const float* from, const RangeList& ranges,
                  uint64_t* digests) {
  cudaMemsetAsync(digests, 0, ranges.size * sizeof(uint64_t), stream);
  size_t longest = 1;
  for (size_t i = 0; i < ranges.size; ++i) {
    longest = ranges.items[i].size > longest ? ranges.items[i].size : longest;
  }
  constexpr size_t kOfBlock = kThreads * 16, kMost = 256;
  const size_t blocks = (longest + kOfBlock - 1) / kOfBlock;
  const dim3 grid(unsigned(blocks < kMost ? blocks : kMost), unsigned(ranges.size));
  AddDigests<<<grid, kThreads, 0, stream>>>(from, ranges,
                                            reinterpret_cast<unsigned long long*>(digests));
}

}  // namespace trireme::cuda
