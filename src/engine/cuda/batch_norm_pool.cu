#include "engine/cuda/batch_norm.cuh"
#include "engine/cuda/batch_norm_pool.h"
#include "engine/cuda/columns.cuh"
#include "engine/cuda/pool_gather.cuh"
#include "engine/cuda/sheet.cuh"

namespace trireme::cuda {
namespace {

// The largest of kN values that come one by one, and where: the first one wins. A batch-norm keeps
// their order, or turns it round where its scale is negative: it is the largest of them normalised,
// or the smallest.
template <int kN, class T>
struct Largest {
  Floats<kN> value;
  int where[kN];
  bool turned[kN];
  __device__ explicit Largest(const Floats<kN>& scale) {
#pragma unroll
    for (int k = 0; k < kN; ++k) turned[k] = scale[k] < 0, where[k] = -1;
  }
  __device__ void Look(int place, const Raw<kN, T>& raw) {
    const Floats<kN> values = Widen(raw);
#pragma unroll
    for (int k = 0; k < kN; ++k) {
      const float other = turned[k] ? -values[k] : values[k];
      if (where[k] >= 0 && other <= value[k]) continue;
      value[k] = other, where[k] = place;
    }
  }
  __device__ float Value(int k) const { return turned[k] ? -value[k] : value[k]; }
  __device__ int Where(int k) const { return where[k]; }
};

// Two at a time.
template <class T>
requires(sizeof(T) == 2) struct Largest<8, T> {
  unsigned value[4], where[4], turned[4];
  __device__ explicit Largest(const Floats<8>& scale) {
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      turned[p] = (scale[2 * p] < 0 ? 0x8000u : 0) | (scale[2 * p + 1] < 0 ? 0x80000000u : 0);
      value[p] = Pair<T>::kLeast;
      where[p] = 0xffffffffu;
    }
  }
  __device__ void Look(int place, const Raw<8, T>& raw) {
    const unsigned words[4] = {raw.bits[0].x, raw.bits[0].y, raw.bits[0].z, raw.bits[0].w};
    const unsigned twice = unsigned(place) * 0x10001u;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const unsigned other = words[p] ^ turned[p];
      const unsigned larger = __hgt2_mask(AsPair(other), AsPair(value[p]));
      value[p] = (other & larger) | (value[p] & ~larger);
      where[p] = (twice & larger) | (where[p] & ~larger);
    }
  }
  __device__ float Value(int k) const {
    const float2 pair = Pair<T>::Widen(value[k / 2] ^ turned[k / 2]);
    return k % 2 ? pair.y : pair.x;
  }
  __device__ int Where(int k) const {
    return int(short(k % 2 ? where[k / 2] >> 16 : where[k / 2] & 0xffffu));
  }
  static __device__ typename Pair<T>::Type AsPair(unsigned bits) {
    return *reinterpret_cast<const typename Pair<T>::Type*>(&bits);
  }
};

// Calls look(place, raw) for all pixels of a window of SlidesOverCells inside the image, which are
// fetched before the first is looked at.
template <int kN, class T, class F>
__device__ __forceinline__ void LookOverCells(const PoolWindow& w, const T* image, const Place& at,
                                              const F& look) {
  // In pixels: to the next cell, to the cell below, to the line below inside a cell.
  const int cell = w.in_cells ? kCell : 2, cells_line = 2 * w.width;
  const int line = w.in_cells ? 2 : w.width;
  const T* const own =
      image + (size_t(at.row) * cells_line + size_t(at.column) * cell) * w.channels;
  const bool exists[4] = {true, at.row > 0, at.column > 0, at.row > 0 && at.column > 0};
  // What the window sees of the cell that it stands over and of those above (1) and to the left
  // (2): place by place, the cell and the pixel in it.
  constexpr int kCells[9] = {3, 1, 1, 2, 0, 0, 2, 0, 0};
  constexpr int kPixels[9] = {3, 2, 3, 1, 0, 1, 3, 2, 3};
  Raw<kN, T> raw[9] = {};
#pragma unroll
  for (int place = 0; place < 9; ++place) {
    const int c = kCells[place], pixel = kPixels[place];
    if (!exists[c]) continue;
    const int back = (c & 1 ? cells_line : 0) + (c & 2 ? cell : 0);
    const int inside = (pixel / 2) * line + pixel % 2;
    raw[place] = Fetch<kN>(own + (inside - back) * w.channels);
  }
#pragma unroll
  for (int place = 0; place < 9; ++place) {
    if (exists[kCells[place]]) look(place, raw[place]);
  }
}

// A thread takes kN channels of a window.
template <int kN, class T, bool kOverCells>
__global__ void __launch_bounds__(kThreads)
    ReluMaxPool(PoolWindow w, size_t packs, BatchNormApply a, uint8_t* index, T* chosen) {
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
    Largest<kN, T> largest(scale);
    int first = -1;  // place inside the image
    Raw<kN, T> at_first;
    const auto look = [&](int place, const Raw<kN, T>& raw) {
      if (first < 0) first = place, at_first = raw;
      largest.Look(place, raw);
    };
    if constexpr (kOverCells) {
      LookOverCells<kN>(w, image, at, look);
    } else {
      ForEachInWindow(w, at.row, at.column, [&](int place, size_t pixel) {
        look(place, Fetch<kN>(image + pixel * w.channels));
      });
    }
    const Floats<kN> first_values = Widen(at_first);
    Floats<kN> made, kept;
    Bytes<kN> places;
#pragma unroll
    for (int k = 0; k < kN; ++k) {
      // Where all are alike, behind the relu or without a scale, the first one wins.
      kept[k] = scale[k] == 0 ? first_values[k] : largest.Value(k);
      const float normal = Normalised(kept[k] - mean[k], scale[k], bias[k]);
      const bool alike = !(normal > 0) || scale[k] == 0;
      made[k] = normal > 0 ? normal : 0;
      places.values[k] = uint8_t(alike ? first : largest.Where(k));
    }
    Store<kN>(static_cast<T*>(a.y) + i * kN, made);
    StoreBytes<kN>(index + i * kN, places);
    if (chosen) Store<kN>(chosen + i * kN, kept);
  });
}

// Its rows are pixels or cells of them.
template <int kN, class T, int kPixels>
struct PooledGradSums {
  BatchNormGrad g;
  PoolWindow w;
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
  __device__ void Begin(int c) { passage.Begin(g, c); }
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
  __device__ void Finish(int c, double sum, double product) const {
    FinishGrad(g, w.channels, rows, c, sum, product, apart ? sums : nullptr, factors);
  }
};

template <int kN, class T, int kPixels>
__global__ void __launch_bounds__(kThreads)
    PooledGradApply(Sheet s, PoolWindow w, const uint8_t* index, BatchNormGrad g,
                    const float* factors) {
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
void WithPixels(const PoolWindow& w, const F& f) {
  if (SlidesOverCells(w)) {
    f(Constant<kCell>());
  } else {
    f(Constant<1>());
  }
}

}  // namespace

void LaunchBatchNormReluMaxPool(cudaStream_t stream, const Columns& g, const PoolWindow& w,
                                const BatchNormApply& apply, uint8_t* index, void* chosen) {
  const size_t samples = g.rows / (size_t(w.height) * size_t(w.width));
  WithPack(g.element, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const size_t packs = samples * w.out_height * w.out_width * (w.channels / kN);
    const auto pool = SlidesOverCells(w) ? ReluMaxPool<kN, T, true> : ReluMaxPool<kN, T, false>;
    pool<<<BlocksFor(packs), kThreads, 0, stream>>>(w, packs, apply, index,
                                                    static_cast<T*>(chosen));
  });
}

void LaunchMaxPoolBatchNormGradSums(cudaStream_t stream, const Columns& g, const PoolWindow& w,
                                    const uint8_t* index, const BatchNormGrad& grad,
                                    const BatchNormScratch& scratch, bool apart) {
  WithPack(g.element, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    WithPixels(w, [&](auto pixels) {
      const PooledGradSums<kN, T, pixels.value> sums = {
          grad, w, index, g.rows, scratch.sums, scratch.factors, apart, {}};
      const Columns units(g.rows / pixels.value, g.channels, g.element);
      LaunchVisitColumns<kN>(stream, units, sums, scratch.columns_scratch);
    });
  });
}

void LaunchMaxPoolBatchNormGrad(cudaStream_t stream, const Columns& g, const PoolWindow& w,
                                const uint8_t* index, const BatchNormGrad& grad,
                                const BatchNormScratch& scratch) {
  WithPack(g.element, g.channels, [&](auto zero, auto pack) {
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
