#include "engine/cuda/batch_norm.cuh"
#include "engine/cuda/batch_norm_pool.h"
#include "engine/cuda/columns.cuh"
#include "engine/cuda/pool_gather.cuh"
#include "engine/cuda/sheet.cuh"

namespace trireme::cuda {
namespace {

// A thread takes kN channels of a window. With kKernel, which is then its size, all its pixels are
// fetched before the first is looked at.
template <int kN, class T, int kKernel>
__global__ void __launch_bounds__(kThreads)
    ReluMaxPool(Window w, size_t packs, BatchNormApply a, uint8_t* index) {
  const int across = w.channels / kN;
  ForEachItem(packs, [&](size_t i) {
    const Place at = PlaceOf(i, w.out_height, w.out_width, across);
    const int c = at.channel * kN;
    const Floats<kN> mean = Load<kN>(a.mean + c), weight = Load<kN>(a.weight + c),
                     bias = Load<kN>(a.bias + c);
    Floats<kN> scale = Load<kN>(a.inv_std + c);
#pragma unroll
    for (int k = 0; k < kN; ++k) scale[k] *= weight[k];
    const T* image = static_cast<const T*>(a.x) + at.sample * w.height * w.width * w.channels + c;
    Floats<kN> largest;
    int where[kN];
#pragma unroll
    for (int k = 0; k < kN; ++k) largest[k] = 0, where[k] = -1;
    const auto look = [&](int place, const Floats<kN>& values) {
#pragma unroll
      for (int k = 0; k < kN; ++k) {
        const float normal = Normalised(values[k] - mean[k], scale[k], bias[k]);
        const float value = normal > 0 ? normal : 0;
        if (where[k] >= 0 && value <= largest[k]) continue;  // the first maximum wins
        largest[k] = value;
        where[k] = place;
      }
    };
    if constexpr (kKernel == 0) {
      ForEachInWindow(w, at.row, at.column, [&](int place, size_t pixel) {
        look(place, Load<kN>(image + pixel * w.channels));
      });
    } else {
      const int top = at.row * w.stride - w.padding, left = at.column * w.stride - w.padding;
      const auto inside = [&](int place) {
        const int row = top + place / kKernel, column = left + place % kKernel;
        return row >= 0 && row < w.height && column >= 0 && column < w.width;
      };
      Raw<kN, T> raw[kKernel * kKernel] = {};
#pragma unroll
      for (int place = 0; place < kKernel * kKernel; ++place) {
        const int row = top + place / kKernel, column = left + place % kKernel;
        if (inside(place)) {
          raw[place] = Fetch<kN>(image + (size_t(row) * w.width + column) * w.channels);
        }
      }
#pragma unroll
      for (int place = 0; place < kKernel * kKernel; ++place) {
        if (inside(place)) look(place, Widen(raw[place]));
      }
    }
    Store<kN>(static_cast<T*>(a.y) + i * kN, largest);
    Bytes<kN> places;
#pragma unroll
    for (int k = 0; k < kN; ++k) places.values[k] = uint8_t(where[k]);
    StoreBytes<kN>(index + i * kN, places);
  });
}

// Its rows are pixels or cells of them.
template <int kN, class T, int kPixels>
struct PooledGradSums {
  BatchNormGrad g;
  Window w;
  const uint8_t* index;
  size_t rows;  // of x
  double* sums;
  float* factors;
  bool apart;
  Passage<kN, true> passage;

  static constexpr int kUnroll = kPixels == 1 ? 2 : 1, kBlocks = 1;
  struct Fetched {
    Raw<kN, T> x[kPixels];
    Pooled<kN, T, kPixels> pooled;
  };
  __device__ void Begin(int c, size_t, size_t) { passage.Begin(g, c); }
  __device__ Fetched Fetch(size_t unit, int c) const {
    Fetched fetched;
    fetched.pooled = GatherPixels<kN, T, kPixels>(w, index, static_cast<const T*>(g.dy), unit, c);
#pragma unroll
    for (int p = 0; p < kPixels; ++p) {
      fetched.x[p] = cuda::Fetch<kN>(static_cast<const T*>(g.x) + fetched.pooled.at[p]);
    }
    return fetched;
  }
  __device__ void Add(const Fetched& fetched, Floats<kN>& sum, Floats<kN>& product) const {
#pragma unroll
    for (int p = 0; p < kPixels; ++p) {
      const Floats<kN> x = Widen(fetched.x[p]);
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        const float off = x[i] - passage.mean[i];
        const float passed = passage.Passed(i, off, fetched.pooled.dy[p][i]);
        sum[i] += passed;
        product[i] = fmaf(passed, off, product[i]);
      }
    }
  }
  __device__ void Part(int, size_t, size_t, double&, double&) const {}
  __device__ void Finish(int c, double sum, double product) const {
    FinishGrad(g, w.channels, rows, c, sum, product, apart ? sums : nullptr, factors);
  }
};

template <int kN, class T, int kPixels>
__global__ void __launch_bounds__(kThreads) PooledGradApply(Sheet s, Window w, const uint8_t* index,
                                                            BatchNormGrad g, const float* factors) {
  const int c = PackOf(s) * kN;
  const size_t channels = size_t(s.packs) * kN;
  Passage<kN, true> passage;
  passage.Begin(g, c);
  const Floats<kN> slope = Load<kN>(factors + c), level = Load<kN>(factors + channels + c);
  const auto fetch_nothing = [](size_t, int) {};  // a cell has enough to fetch at once
  ForEachRow(s, fetch_nothing, [&](size_t unit, int) {
    const auto pooled =
        GatherPixels<kN, T, kPixels>(w, index, static_cast<const T*>(g.dy), unit, c);
    Raw<kN, T> x[kPixels];
#pragma unroll
    for (int p = 0; p < kPixels; ++p) x[p] = Fetch<kN>(static_cast<const T*>(g.x) + pooled.at[p]);
#pragma unroll
    for (int p = 0; p < kPixels; ++p) {
      Store<kN>(static_cast<T*>(g.dx) + pooled.at[p],
                GradOf(passage, slope, level, Widen(x[p]), pooled.dy[p]));
    }
  });
}

// Calls f with the number of pixels that are looked at together, as a constant.
template <class F>
void WithPixels(const Window& w, const F& f) {
  if (HasCells(w)) {
    f(Constant<kCell>());
  } else {
    f(Constant<1>());
  }
}

}  // namespace

void LaunchBatchNormReluMaxPool(cudaStream_t stream, const Columns& g, const Window& w,
                                const BatchNormApply& apply, uint8_t* index) {
  const size_t samples = g.rows / (size_t(w.height) * size_t(w.width));
  WithPack(g.narrow, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const size_t packs = samples * w.out_height * w.out_width * (w.channels / kN);
    const auto pool = w.kernel == 3 ? ReluMaxPool<kN, T, 3> : ReluMaxPool<kN, T, 0>;
    pool<<<BlocksFor(packs), kThreads, 0, stream>>>(w, packs, apply, index);
  });
}

void LaunchMaxPoolBatchNormGradSums(cudaStream_t stream, const Columns& g, const Window& w,
                                    const uint8_t* index, const BatchNormGrad& grad,
                                    const BatchNormScratch& scratch, bool apart) {
  WithPack(g.narrow, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    WithPixels(w, [&](auto pixels) {
      const PooledGradSums<kN, T, pixels.value> sums = {
          grad, w, index, g.rows, scratch.sums, scratch.factors, apart, {}};
      const Columns units(g.rows / pixels.value, g.channels, g.narrow);
      LaunchVisitColumns<kN>(stream, units, sums, scratch.columns_scratch);
    });
  });
}

void LaunchMaxPoolBatchNormGrad(cudaStream_t stream, const Columns& g, const Window& w,
                                const uint8_t* index, const BatchNormGrad& grad,
                                const BatchNormScratch& scratch) {
  WithPack(g.narrow, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    WithPixels(w, [&](auto pixels) {
      const Sheet sheet(g.rows / pixels.value, g.channels / kN);
      PooledGradApply<kN, T, pixels.value>
          <<<sheet.grid(), kThreads, 0, stream>>>(sheet, w, index, grad, scratch.factors);
    });
  });
}

}  // namespace trireme::cuda
