#include "engine/cuda/batch_norm.cuh"
#include "engine/cuda/batch_norm_pool.h"
#include "engine/cuda/columns.cuh"
#include "engine/cuda/pool_gather.cuh"
#include "engine/cuda/sheet.cuh"

namespace trireme::cuda {
namespace {

// A thread takes kN channels of a window.
template <int kN, class T>
__global__ void __launch_bounds__(kThreads)
    ReluMaxPool(Window w, size_t packs, BatchNormApply a, uint8_t* index) {
  const int across = w.channels / kN;
  ForEachItem(packs, [&](size_t i) {
    const Place at = PlaceOf(i, w.out_height, w.out_width, across);
    const int c = at.channel * kN;
    const Floats<kN> mean = Load<kN>(a.mean + c), inv_std = Load<kN>(a.inv_std + c),
                     weight = Load<kN>(a.weight + c), bias = Load<kN>(a.bias + c);
    const T* image = static_cast<const T*>(a.x) + at.sample * w.height * w.width * w.channels + c;
    Floats<kN> largest;
    int where[kN];
#pragma unroll
    for (int k = 0; k < kN; ++k) largest[k] = 0, where[k] = -1;
    ForEachInWindow(w, at.row, at.column, [&](int place, size_t pixel) {
      const Floats<kN> values = Load<kN>(image + pixel * w.channels);
#pragma unroll
      for (int k = 0; k < kN; ++k) {
        const float normal = Normalised(values[k] - mean[k], inv_std[k] * weight[k], bias[k]);
        const float value = normal > 0 ? normal : 0;
        if (where[k] >= 0 && value <= largest[k]) continue;  // the first maximum wins
        largest[k] = value;
        where[k] = place;
      }
    });
    Store<kN>(static_cast<T*>(a.y) + i * kN, largest);
    Bytes<kN> places;
#pragma unroll
    for (int k = 0; k < kN; ++k) places.values[k] = uint8_t(where[k]);
    StoreBytes<kN>(index + i * kN, places);
  });
}

template <int kN, class T>
struct PooledGradSums {
  BatchNormGrad g;
  Window w;
  const uint8_t* index;
  size_t rows;
  double* sums;
  float* factors;
  bool apart;
  Passage<kN, true> passage;

  static constexpr int kUnroll = 2;
  struct Fetched {
    Raw<kN, T> x;
    Floats<kN> dy;
  };
  __device__ void Begin(int c, size_t, size_t) { passage.Begin(g, c); }
  __device__ Fetched Fetch(size_t at) const {
    const Place pixel = PlaceOf(at, w.height, w.width, w.channels);
    return {cuda::Fetch<kN>(static_cast<const T*>(g.x) + at),
            GatherFromWindows<kN>(w, index, static_cast<const T*>(g.dy), pixel.sample, pixel.row,
                                  pixel.column, pixel.channel)};
  }
  __device__ void Add(const Fetched& fetched, Floats<kN>& sum, Floats<kN>& product) const {
    const Floats<kN> x = Widen(fetched.x);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float off = x[i] - passage.mean[i], passed = passage.Passed(i, off, fetched.dy[i]);
      sum[i] += passed;
      product[i] = fmaf(passed, off, product[i]);
    }
  }
  __device__ void Part(int, size_t, size_t, double&, double&) const {}
  __device__ void Finish(int c, double sum, double product) const {
    FinishGrad(g, w.channels, rows, c, sum, product, apart ? sums : nullptr, factors);
  }
};

template <int kN, class T>
__global__ void __launch_bounds__(kThreads) PooledGradApply(Sheet s, Window w, const uint8_t* index,
                                                            BatchNormGrad g, const float* factors) {
  const int c = PackOf(s) * kN;
  const size_t channels = size_t(s.packs) * kN;
  Passage<kN, true> passage;
  passage.Begin(g, c);
  const Floats<kN> slope = Load<kN>(factors + c), level = Load<kN>(factors + channels + c);
  const T* x = static_cast<const T*>(g.x) + c;
  T* dx = static_cast<T*>(g.dx) + c;
  Raw<kN, T> values[Sheet::kUnroll];
  ForEachRow(
      s, [&](size_t row, int u) { values[u] = Fetch<kN>(x + row * channels); },
      [&](size_t row, int u) {
        const Place pixel = PlaceOf(row, w.height, w.width, 1);
        const Floats<kN> value = Widen(values[u]);
        const Floats<kN> gradient = GatherFromWindows<kN>(w, index, static_cast<const T*>(g.dy),
                                                          pixel.sample, pixel.row, pixel.column, c);
        Store<kN>(dx + row * channels, GradOf(passage, slope, level, value, gradient));
      });
}

}  // namespace

void LaunchBatchNormReluMaxPool(cudaStream_t stream, const Columns& g, const Window& w,
                                const BatchNormApply& apply, uint8_t* index) {
  const size_t samples = g.rows / (size_t(w.height) * size_t(w.width));
  WithPack(g.narrow, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const size_t packs = samples * w.out_height * w.out_width * (w.channels / kN);
    ReluMaxPool<kN, T><<<BlocksFor(packs), kThreads, 0, stream>>>(w, packs, apply, index);
  });
}

void LaunchMaxPoolBatchNormGradSums(cudaStream_t stream, const Columns& g, const Window& w,
                                    const uint8_t* index, const BatchNormGrad& grad,
                                    const BatchNormScratch& scratch, bool apart) {
  WithPack(g.narrow, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const PooledGradSums<kN, T> sums = {grad,  w, index, g.rows, scratch.sums, scratch.factors,
                                        apart, {}};
    LaunchVisitColumns<kN>(stream, g, sums, scratch.columns_scratch);
  });
}

void LaunchMaxPoolBatchNormGrad(cudaStream_t stream, const Columns& g, const Window& w,
                                const uint8_t* index, const BatchNormGrad& grad,
                                const BatchNormScratch& scratch) {
  WithPack(g.narrow, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const Sheet sheet(g.rows, g.channels / kN);
    PooledGradApply<kN, T>
        <<<sheet.grid(), kThreads, 0, stream>>>(sheet, w, index, grad, scratch.factors);
  });
}

}  // namespace trireme::cuda
