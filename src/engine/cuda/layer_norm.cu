#include "engine/cuda/columns.cuh"
#include "engine/cuda/layer_norm.h"

namespace trireme::cuda {
namespace {

// Where sample n of an array begins.
template <class T>
__device__ T* SampleOf(const Array& array, size_t n, size_t size) {
  return static_cast<T*>(array.data) + n * size;
}

// Two ways to share out samples. Both give all places of a sample that a thread has (ForEachPlace),
// its values there (Values) and sums over the sample, and write what f makes for each place.

// A block takes a sample at a time, of any size, and reads it again and again.
struct ByBlock {
  struct Place {
    size_t i;
  };
  template <class F>
  static __device__ void ForEachSample(size_t samples, const F& f) {
    for (size_t n = blockIdx.x; n < samples; n += gridDim.x) f(n);
  }
  template <class F>
  static __device__ void ForEachPlace(size_t size, const F& f) {
    for (size_t i = threadIdx.x; i < size; i += kThreads) f(Place{i});
  }
  template <class T>
  struct Values {
    const T* from;
    __device__ Values(const T* begin, size_t) : from(begin) {}
    __device__ float operator[](Place p) const { return float(from[p.i]); }
  };
  static __device__ double Sum(float value) { return SumBlock(value); }
  static __device__ bool IsFirst() { return threadIdx.x == 0; }
  template <class T, class F>
  static __device__ void Write(T* to, size_t size, const F& f) {
    ForEachPlace(size, [&](Place p) { to[p.i] = T(f(p)); });
  }
};

// A warp takes a sample at a time, and each thread holds kHeld packs of it.
template <int kN, int kHeld>
struct ByWarp {
  struct Place {
    unsigned i;
    int pack, k;
  };
  static __device__ unsigned PackAt(int u) {
    return unsigned(threadIdx.x % kWarp + u * kWarp) * kN;
  }
  template <class F>
  static __device__ void ForEachSample(size_t samples, const F& f) {
    constexpr unsigned kOfBlock = kThreads / kWarp;
    const size_t step = size_t{gridDim.x} * kOfBlock;
    for (size_t n = size_t{blockIdx.x} * kOfBlock + threadIdx.x / kWarp; n < samples; n += step) {
      f(n);
    }
  }
  template <class F>
  static __device__ __forceinline__ void ForEachPlace(size_t size, const F& f) {
#pragma unroll
    for (int u = 0; u < kHeld; ++u) {
      if (PackAt(u) >= size) continue;
#pragma unroll
      for (int k = 0; k < kN; ++k) f(Place{PackAt(u) + unsigned(k), u, k});
    }
  }
  template <class T>
  struct Values {
    Floats<kN> held[kHeld];
    __device__ __forceinline__ Values(const T* from, size_t size) {
      if (!from) return;
#pragma unroll
      for (int u = 0; u < kHeld; ++u) {
        if (PackAt(u) < size) held[u] = Load<kN>(from + PackAt(u));
      }
    }
    __device__ __forceinline__ float operator[](Place p) const { return held[p.pack][p.k]; }
  };
  static __device__ float Sum(float value) { return SumWarp(value); }
  static __device__ bool IsFirst() { return threadIdx.x % kWarp == 0; }
  template <class T, class F>
  static __device__ __forceinline__ void Write(T* to, size_t size, const F& f) {
#pragma unroll
    for (int u = 0; u < kHeld; ++u) {
      if (PackAt(u) >= size) continue;
      Floats<kN> made;
#pragma unroll
      for (int k = 0; k < kN; ++k) made[k] = f(Place{PackAt(u) + unsigned(k), u, k});
      Store<kN>(to + PackAt(u), made);
    }
  }
};

template <class By, class T>
__global__ void __launch_bounds__(kThreads) Forward(LayerNorm g) {
  using Place = typename By::Place;
  const typename By::template Values<float> weight(g.weight, g.size), bias(g.bias, g.size);
  By::ForEachSample(g.samples, [&](size_t n) {
    const typename By::template Values<T> x(SampleOf<const T>(g.x, n, g.size), g.size);
    float rough = 0;
    By::ForEachPlace(g.size, [&](Place p) { rough += x[p]; });
    // Need not be exact: what it is off by is summed up as well.
    const float pivot = float(By::Sum(rough) / double(g.size));
    float sum = 0, square = 0;
    By::ForEachPlace(g.size, [&](Place p) {
      const float off = x[p] - pivot;
      sum += off;
      square = fmaf(off, off, square);
    });
    const double off = By::Sum(sum) / double(g.size);
    const double variance = By::Sum(square) / double(g.size) - off * off;
    const float mean = float(pivot + off);
    const float inv_std = float(1 / sqrt((variance < 0 ? 0 : variance) + double(g.epsilon)));
    if (By::IsFirst()) {
      g.mean[n] = mean;
      g.inv_std[n] = inv_std;
    }
    By::Write(SampleOf<T>(g.y, n, g.size), g.size, [&](Place p) {
      const float normal = (x[p] - mean) * inv_std;
      return g.weight ? fmaf(normal, weight[p], bias[p]) : normal;
    });
  });
}

template <class By, class T>
__global__ void __launch_bounds__(kThreads) Backward(LayerNormGrad g) {
  using Place = typename By::Place;
  const typename By::template Values<float> weight(g.weight, g.size);
  By::ForEachSample(g.samples, [&](size_t n) {
    const typename By::template Values<T> x(SampleOf<const T>(g.x, n, g.size), g.size),
        dy(SampleOf<const T>(g.dy, n, g.size), g.size);
    const float mean = g.mean[n], inv_std = g.inv_std[n];
    // Rounded, so that what is taken from itself leaves nothing.
    const auto d_normal = [&](Place p) { return g.weight ? __fmul_rn(dy[p], weight[p]) : dy[p]; };
    float sum = 0, product = 0;
    By::ForEachPlace(g.size, [&](Place p) {
      const float d = d_normal(p);
      sum += d;
      product = fmaf(d, (x[p] - mean) * inv_std, product);
    });
    const float level = float(By::Sum(sum) / double(g.size));
    const float slope = float(By::Sum(product) / double(g.size));
    By::Write(SampleOf<T>(g.dx, n, g.size), g.size, [&](Place p) {
      const float normal = (x[p] - mean) * inv_std;
      return inv_std * (d_normal(p) - level - normal * slope);
    });
  });
}

// d_weight and d_bias, whose rows are the samples.
template <int kN, class T>
struct ParameterSums {
  LayerNormGrad g;

  static constexpr int kUnroll = 4, kBlocks = 1;
  struct Fetched {
    Raw<kN, T> x, dy;
    float mean, inv_std;
  };
  __device__ void Begin(int) {}
  __device__ Fetched Fetch(size_t row, int c) const {
    return {cuda::Fetch<kN>(SampleOf<const T>(g.x, row, g.size) + c),
            cuda::Fetch<kN>(SampleOf<const T>(g.dy, row, g.size) + c), g.mean[row], g.inv_std[row]};
  }
  __device__ void Add(const Fetched& fetched, Floats<kN>& weight, Floats<kN>& bias) const {
    const Floats<kN> x = Widen(fetched.x), dy = Widen(fetched.dy);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      weight[i] = fmaf(dy[i], (x[i] - fetched.mean) * fetched.inv_std, weight[i]);
      bias[i] += dy[i];
    }
  }
  __device__ void Finish(int c, double weight, double bias) const {
    g.d_weight[c] = (g.accumulate ? g.d_weight[c] : 0) + float(weight);
    g.d_bias[c] = (g.accumulate ? g.d_bias[c] : 0) + float(bias);
  }
};

// Calls f with a number of the arrays' type, how samples are shared out, and how many a block takes
// at a time.
template <class F>
void WithSamples(Element element, size_t size, const F& f) {
  constexpr size_t kByWarps = kThreads / kWarp;
  WithPack(element, int(size), [&](auto zero, auto pack) {
    constexpr int kN = pack.value;
    if constexpr (kN > 1) {
      const size_t packs = (size / kN + kWarp - 1) / kWarp;  // of a thread
      if (packs <= 1) return f(zero, ByWarp<kN, 1>(), kByWarps);
      if (packs <= 2) return f(zero, ByWarp<kN, 2>(), kByWarps);
      if (packs <= 4) return f(zero, ByWarp<kN, 4>(), kByWarps);
      if constexpr (kN == 4) {
        if (packs <= 8) return f(zero, ByWarp<kN, 8>(), kByWarps);
      }
    }
    f(zero, ByBlock(), size_t{1});
  });
}

unsigned BlocksForSamples(size_t samples, size_t at_once) {
  const size_t blocks = (samples + at_once - 1) / at_once;
  return unsigned(blocks < 65536 ? blocks : 65536);
}

}  // namespace

void LaunchLayerNorm(cudaStream_t stream, const LayerNorm& norm) {
  WithSamples(norm.x.element, norm.size, [&](auto zero, auto by, size_t at_once) {
    Forward<decltype(by), decltype(zero)>
        <<<BlocksForSamples(norm.samples, at_once), kThreads, 0, stream>>>(norm);
  });
}

void LaunchLayerNormGrad(cudaStream_t stream, const LayerNormGrad& grad, const Columns& columns,
                         const ColumnScratch& scratch) {
  WithSamples(grad.x.element, grad.size, [&](auto zero, auto by, size_t at_once) {
    Backward<decltype(by), decltype(zero)>
        <<<BlocksForSamples(grad.samples, at_once), kThreads, 0, stream>>>(grad);
  });
  if (!grad.weight) return;
  WithPack(columns.element, columns.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    LaunchVisitColumns<kN>(stream, columns, ParameterSums<kN, T>{grad}, scratch);
  });
}

}  // namespace trireme::cuda
