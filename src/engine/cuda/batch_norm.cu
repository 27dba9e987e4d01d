#include "engine/cuda/batch_norm.cuh"
#include "engine/cuda/columns.cuh"
#include "engine/cuda/sheet.cuh"

namespace trireme::cuda {
namespace {

// About a mean of the first rows: what that is off by is summed up as well.
template <int kN, class T>
struct Squares {
  const T* x;
  int channels;
  size_t rows;
  double* sums;
  bool apart;
  BatchNormMeasure measure;
  Floats<kN> pivot;

  static constexpr int kUnroll = 4, kBlocks = 2;
  using Fetched = Raw<kN, T>;
  __device__ void Begin(int c) { pivot = PivotOf<kN>(x, rows, channels, c); }
  __device__ Fetched Fetch(size_t row, int c) const {
    return cuda::Fetch<kN>(x + row * channels + c);
  }
  __device__ void Add(const Fetched& fetched, Floats<kN>& sum, Floats<kN>& square) const {
    const Floats<kN> values = Widen(fetched);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float off = values[i] - pivot[i];
      sum[i] += off;
      square[i] = fmaf(off, off, square[i]);
    }
  }
  __device__ void Finish(int c, double sum, double square) const {
    const double n = double(rows), about = PivotOf<1>(x, rows, channels, c)[0];
    if (!apart) {
      return MeasureChannel(measure, c, n, about + sum / n, square - sum * sum / n);
    }
    // Those of other ranks are about something else. In double the plain sums lose nothing that
    // matters.
    sums[c] = sum + n * about;
    sums[channels + c] = square + about * (2 * sum + n * about);
    if (c == 0) sums[2 * channels] = n;
  }
};

__global__ void Measure(int channels, const double* all, BatchNormMeasure m) {
  ForEachItem(channels, [=](size_t c) {
    const double n = all[2 * channels], mean = all[c] / n;
    MeasureChannel(m, int(c), n, mean, all[channels + c] - n * mean * mean);
  });
}

template <int kN, class T, bool kAdd, bool kRelu, bool kMask>
__global__ void __launch_bounds__(kThreads) Apply(Sheet s, BatchNormApply a) {
  const int c = PackOf(s) * kN;
  const size_t channels = size_t(s.packs) * kN;
  const Floats<kN> mean = Load<kN>(a.mean + c), weight = Load<kN>(a.weight + c),
                   bias = Load<kN>(a.bias + c);
  Floats<kN> scale = Load<kN>((a.inv_std ? a.inv_std : a.variance) + c);
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    scale[i] = (a.inv_std ? scale[i] : 1 / sqrtf(scale[i] + a.epsilon)) * weight[i];
  }
  const T* x = static_cast<const T*>(a.x) + c;
  const T* residual = kAdd ? static_cast<const T*>(a.residual) + c : nullptr;
  T* y = static_cast<T*>(a.y) + c;
  Raw<kN, T> values[Sheet::kUnroll], added[Sheet::kUnroll];
  ForEachRow(
      s,
      [&](size_t row, int u) {
        values[u] = Fetch<kN>(x + row * channels);
        if (kAdd) added[u] = Fetch<kN>(residual + row * channels);
      },
      [&](size_t row, int u) {
        Floats<kN> made = Widen(values[u]);
        Floats<kN> other = {};
        if (kAdd) other = Widen(added[u]);
        unsigned mask = 0;
#pragma unroll
        for (int i = 0; i < kN; ++i) {
          float normal = Normalised(made[i] - mean[i], scale[i], bias[i]);
          if (kAdd) normal += other[i];
          made[i] = kRelu && !(normal > 0) ? 0 : normal;
          // Of what is stored: a tiny number may round to 0.
          if (kMask) mask |= unsigned(float(T(made[i])) > 0) << i;
        }
        Store<kN>(y + row * channels, made);
        if (kMask) a.mask[row * s.packs + PackOf(s)] = uint8_t(mask);
      });
}

template <int kN, class T>
struct AppliedSums {
  BatchNormApply a;
  int channels;
  float* sums;
  Floats<kN> mean, scale, bias;

  static constexpr int kUnroll = 4, kBlocks = 2;
  struct Fetched {
    Raw<kN, T> x;
    size_t at;
  };
  __device__ void Begin(int c) {
    mean = Load<kN>(a.mean + c), scale = Load<kN>(a.inv_std + c), bias = Load<kN>(a.bias + c);
    const Floats<kN> weight = Load<kN>(a.weight + c);
#pragma unroll
    for (int i = 0; i < kN; ++i) scale[i] *= weight[i];
  }
  __device__ Fetched Fetch(size_t row, int c) const {
    const size_t at = row * channels + c;
    return {cuda::Fetch<kN>(static_cast<const T*>(a.x) + at), at};
  }
  __device__ void Add(const Fetched& fetched, Floats<kN>& sum, Floats<kN>&) const {
    Floats<kN> made = Widen(fetched.x);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float normal = Normalised(made[i] - mean[i], scale[i], bias[i]);
      made[i] = float(T(normal > 0 ? normal : 0));
      sum[i] += made[i];
    }
    Store<kN>(static_cast<T*>(a.y) + fetched.at, made);
  }
  __device__ void Finish(int c, double sum, double) const { sums[c] = float(sum); }
};

template <int kN, class T, bool kRelu>
struct GradSums {
  BatchNormGrad g;
  int channels;
  size_t rows;
  double* sums;
  float* factors;
  bool apart;
  Passage<kN, kRelu> passage;

  static constexpr int kUnroll = 4, kBlocks = 2;
  struct Fetched {
    Raw<kN, T> x, dy;
  };
  __device__ void Begin(int c) { passage.Begin(g, c); }
  __device__ Fetched Fetch(size_t row, int c) const {
    const size_t at = row * channels + c;
    return {cuda::Fetch<kN>(static_cast<const T*>(g.x) + at),
            cuda::Fetch<kN>(static_cast<const T*>(g.dy) + at)};
  }
  __device__ void Add(const Fetched& fetched, Floats<kN>& sum, Floats<kN>& product) const {
    const Floats<kN> x = Widen(fetched.x), dy = Widen(fetched.dy);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float off = x[i] - passage.mean[i], passed = passage.Passed(i, off, dy[i]);
      sum[i] += passed;
      product[i] = fmaf(passed, off, product[i]);
    }
  }
  __device__ void Finish(int c, double sum, double product) const {
    FinishGrad(g, channels, rows, c, sum, product, apart ? sums : nullptr, factors);
  }
};

// What reaches the sums is what is stored of it.
template <int kN, class T, bool kMask>
struct SummedGradSums {
  BatchNormGrad g;
  BatchNormSummed from;
  int channels;
  size_t rows;
  double* sums;
  float* factors;
  bool apart;
  Floats<kN> mean;

  static constexpr int kUnroll = 2, kBlocks = 2;
  struct Fetched {
    Raw<kN, T> a, b, y, x;
    unsigned mask;
    size_t at;
  };
  __device__ void Begin(int c) { mean = Load<kN>(g.mean + c); }
  __device__ Fetched Fetch(size_t row, int c) const {
    const size_t at = row * channels + c;
    Fetched fetched;
    fetched.a = cuda::Fetch<kN>(static_cast<const T*>(from.a) + at);
    fetched.b = cuda::Fetch<kN>(static_cast<const T*>(from.b) + at);
    fetched.x = cuda::Fetch<kN>(static_cast<const T*>(g.x) + at);
    if (kMask) {
      fetched.mask = from.mask[at / 8];
    } else {
      fetched.y = cuda::Fetch<kN>(static_cast<const T*>(from.y) + at);
    }
    fetched.at = at;
    return fetched;
  }
  __device__ void Add(const Fetched& fetched, Floats<kN>& sum, Floats<kN>& product) const {
    const Floats<kN> a = Widen(fetched.a), b = Widen(fetched.b), x = Widen(fetched.x);
    Floats<kN> y = {};
    if (!kMask) y = Widen(fetched.y);
    Floats<kN> dy;
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const bool passes = kMask ? fetched.mask >> i & 1 : y[i] > 0;
      dy[i] = float(T(passes ? a[i] + b[i] : 0.0f));
      sum[i] += dy[i];
      product[i] = fmaf(dy[i], x[i] - mean[i], product[i]);
    }
    Store<kN>(static_cast<T*>(from.sum) + fetched.at, dy);
  }
  __device__ void Finish(int c, double sum, double product) const {
    FinishGrad(g, channels, rows, c, sum, product, apart ? sums : nullptr, factors);
  }
};

__global__ void GradFactors(int channels, BatchNormGrad g, const double* all, float* factors) {
  ForEachItem(channels, [=](size_t c) {
    FindFactors(g, channels, int(c), all[2 * channels], all[c], all[channels + c], factors);
  });
}

template <int kN, class T, bool kRelu>
__global__ void __launch_bounds__(kThreads)
    GradApply(Sheet s, BatchNormGrad g, const float* factors) {
  const int c = PackOf(s) * kN;
  const size_t channels = size_t(s.packs) * kN;
  Passage<kN, kRelu> passage;
  passage.Begin(g, c);
  const Floats<kN> slope = Load<kN>(factors + c), level = Load<kN>(factors + channels + c);
  const T *x = static_cast<const T*>(g.x) + c, *dy = static_cast<const T*>(g.dy) + c;
  T* dx = static_cast<T*>(g.dx) + c;
  Raw<kN, T> values[Sheet::kUnroll], gradients[Sheet::kUnroll];
  ForEachRow(
      s,
      [&](size_t row, int u) {
        values[u] = Fetch<kN>(x + row * channels);
        gradients[u] = Fetch<kN>(dy + row * channels);
      },
      [&](size_t row, int u) {
        Store<kN>(dx + row * channels,
                  GradOf(passage, slope, level, Widen(values[u]), Widen(gradients[u])));
      });
}

// Calls f with true or false as a constant.
template <class F>
void WithFlag(bool flag, const F& f) {
  if (flag) {
    f(Constant<true>());
  } else {
    f(Constant<false>());
  }
}

}  // namespace

void LaunchBatchNormSums(cudaStream_t stream, const Columns& g, const void* x,
                         const BatchNormScratch& scratch, const BatchNormMeasure& measure,
                         bool apart) {
  WithPack(g.element, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const Squares<kN, T> squares = {
        static_cast<const T*>(x), g.channels, g.rows, scratch.sums, apart, measure, {}};
    LaunchVisitColumns<kN>(stream, g, squares, scratch.columns_scratch);
  });
}

void LaunchBatchNormMeasure(cudaStream_t stream, int channels, const double* all,
                            const BatchNormMeasure& measure) {
  Measure<<<BlocksFor(size_t(channels)), kThreads, 0, stream>>>(channels, all, measure);
}

void LaunchBatchNormApply(cudaStream_t stream, const Columns& g, const BatchNormApply& apply) {
  if (apply.mask) {
    const Sheet sheet(g.rows, g.channels / 8);
    return WithElement(g.element, [&](auto zero) {
      Apply<8, decltype(zero), true, true, true>
          <<<sheet.grid(), kThreads, 0, stream>>>(sheet, apply);
    });
  }
  WithPack(g.element, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const Sheet sheet(g.rows, g.channels / kN);
    WithFlag(apply.residual != nullptr, [&](auto adds) {
      WithFlag(apply.relu, [&](auto relus) {
        Apply<kN, T, adds.value, relus.value, false>
            <<<sheet.grid(), kThreads, 0, stream>>>(sheet, apply);
      });
    });
  });
}

void LaunchBatchNormApplyAndSum(cudaStream_t stream, const Columns& g, const BatchNormApply& apply,
                                float* sums, const BatchNormScratch& scratch) {
  WithPack(g.element, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const AppliedSums<kN, T> applied = {apply, g.channels, sums, {}, {}, {}};
    LaunchVisitColumns<kN>(stream, g, applied, scratch.columns_scratch);
  });
}

void LaunchBatchNormGradSums(cudaStream_t stream, const Columns& g, const BatchNormGrad& grad,
                             const BatchNormScratch& scratch, bool apart) {
  WithPack(g.element, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    WithFlag(grad.relu, [&](auto relus) {
      const size_t rows = grad.population ? grad.population : g.rows;
      const GradSums<kN, T, relus.value> sums = {
          grad, g.channels, rows, scratch.sums, scratch.factors, apart, {}};
      LaunchVisitColumns<kN>(stream, g, sums, scratch.columns_scratch);
    });
  });
}

void LaunchBatchNormSummedGradSums(cudaStream_t stream, const Columns& g, const BatchNormGrad& grad,
                                   const BatchNormSummed& summed, const BatchNormScratch& scratch,
                                   bool apart) {
  const auto launch = [&](auto zero, auto pack, auto masked) {
    constexpr int kN = pack.value;
    const SummedGradSums<kN, decltype(zero), masked.value> sums = {
        grad, summed, g.channels, g.rows, scratch.sums, scratch.factors, apart, {}};
    LaunchVisitColumns<kN>(stream, g, sums, scratch.columns_scratch);
  };
  if (summed.mask) {
    WithElement(g.element, [&](auto zero) { launch(zero, Constant<8>(), Constant<true>()); });
  } else {
    WithPack(g.element, g.channels,
             [&](auto zero, auto pack) { launch(zero, pack, Constant<false>()); });
  }
}

void LaunchBatchNormGradFactors(cudaStream_t stream, const Columns& g, const BatchNormGrad& grad,
                                const BatchNormScratch& scratch, const double* all) {
  GradFactors<<<BlocksFor(size_t(g.channels)), kThreads, 0, stream>>>(g.channels, grad, all,
                                                                      scratch.factors);
}

void LaunchBatchNormGrad(cudaStream_t stream, const Columns& g, const BatchNormGrad& grad,
                         const BatchNormScratch& scratch) {
  WithPack(g.element, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const Sheet sheet(g.rows, g.channels / kN);
    WithFlag(grad.relu, [&](auto relus) {
      GradApply<kN, T, relus.value>
          <<<sheet.grid(), kThreads, 0, stream>>>(sheet, grad, scratch.factors);
    });
  });
}

}  // namespace trireme::cuda
