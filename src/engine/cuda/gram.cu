#include "engine/cuda/batch_norm.cuh"
#include "engine/cuda/block.cuh"
#include "engine/cuda/columns.cuh"
#include "engine/cuda/gram.h"
#include "engine/cuda/launch.cuh"

namespace trireme::cuda {
namespace {

template <class T>
__device__ T* In(const Array& array) {
  return static_cast<T*>(array.data);
}

// A block takes kAcross columns of a matrix [in][out]; its threads lie beside and below each other,
// so many that few columns keep a card busy as well.
constexpr int kAcross = 16, kBelow = 64, kSquareThreads = kAcross * kBelow;

struct Place {
  int column, below;
  bool inside;
};
__device__ Place PlaceIn(const GramSizes& s) {
  const int column = int(blockIdx.x) * kAcross + int(threadIdx.x) % kAcross;
  return {column, int(threadIdx.x) / kAcross, column < s.out};
}
inline unsigned BlocksAcross(const GramSizes& s) {
  return unsigned((s.out + kAcross - 1) / kAcross);
}

// Two sums over the rows of a column: add(i, first, second). Those of all rows get the threads with
// below == 0; all threads call it, once in a kernel.
template <class Add>
__device__ double2 SumColumn(const GramSizes& s, const Place& place, const Add& add) {
  __shared__ double2 shared[kBelow][kAcross];
  double2 sum = make_double2(0, 0);
  if (place.inside) {
#pragma unroll 4
    for (int i = place.below; i < s.in; i += kBelow) add(i, sum.x, sum.y);
  }
  const int lane = int(threadIdx.x) % kAcross;
  shared[place.below][lane] = sum;
#pragma unroll
  for (int half = kBelow / 2; half > 0; half /= 2) {
    __syncthreads();
    if (place.below >= half) continue;
    sum.x += shared[place.below + half][lane].x;
    sum.y += shared[place.below + half][lane].y;
    shared[place.below][lane] = sum;
  }
  return sum;
}

template <class T>
__global__ void Centre(GramSizes s, const float* sums, float* kept_sums, float* gram,
                       const T* weights, float* wide) {
  const size_t square = size_t(s.in) * s.in;
  ForEachItem(square + s.weights(), [=](size_t at) {
    if (kept_sums != sums && at < size_t(s.in)) kept_sums[at] = sums[at];
    if (at < square) {
      const double product = double(sums[at / s.in]) * double(sums[at % s.in]);
      gram[at] = float(gram[at] - product / double(s.rows));
    } else {
      wide[at - square] = float(weights[at - square]);
    }
  });
}

template <class T>
__global__ void MeasureProducts(GramSizes s, const T* weights, const float* covariant,
                                const float* sums, double* sums_of_y, BatchNormMeasure measure,
                                bool apart) {
  const Place place = PlaceIn(s);
  const double2 sum = SumColumn(s, place, [&](int i, double& square, double& total) {
    const size_t at = size_t(i) * s.out + place.column;
    const double w = float(weights[at]);
    square += w * covariant[at];
    total += w * sums[i];
  });
  if (!place.inside || place.below > 0) return;
  const double n = double(s.rows), mean = sum.y / n, central = sum.x < 0 ? 0 : sum.x;
  const int c = place.column;
  if (!apart) return MeasureChannel(measure, c, n, mean, central);
  sums_of_y[c] = sum.y;
  sums_of_y[s.out + c] = central + n * mean * mean;
  if (c == 0) sums_of_y[2 * s.out] = n;
}

template <class T, class R>
__global__ void Scale(GramSizes s, GramScale g) {
  const Place place = PlaceIn(s);
  const int c = place.column;
  const float scale = place.inside ? g.inv_std[c] * g.weight[c] : 0;
  const T* const weights = In<T>(g.weights);
  T* const scaled = In<T>(g.scaled);
  const double2 sum = SumColumn(s, place, [&](int i, double& lost, double&) {
    const size_t at = size_t(i) * s.out + c;
    const float whole = scale * float(weights[at]);
    const T rounded = T(whole);
    scaled[at] = rounded;
    lost += double(whole - float(rounded)) * g.sums[i];
  });
  if (!place.inside || place.below > 0) return;
  const double shift = g.bias[c] - double(g.mean[c]) * scale + sum.x / double(s.rows);
  In<R>(g.shift)[c] = R(float(shift));
}

// Of the columns of dy; the second sum is not used.
template <int kN, class T>
struct DySums {
  const T* dy;
  int channels;
  double* sums;

  static constexpr int kUnroll = 4, kBlocks = 2;
  using Fetched = Raw<kN, T>;
  __device__ void Begin(int) {}
  __device__ Fetched Fetch(size_t row, int c) const {
    return cuda::Fetch<kN>(dy + row * channels + c);
  }
  __device__ void Add(const Fetched& fetched, Floats<kN>& sum, Floats<kN>&) const {
    const Floats<kN> values = Widen(fetched);
#pragma unroll
    for (int i = 0; i < kN; ++i) sum[i] += values[i];
  }
  __device__ void Finish(int c, double sum, double) const { sums[c] = sum; }
};

// What reaches the sums is what is stored of it.
template <int kN, class T, bool kMask>
struct SummedDySums {
  BatchNormSummed from;
  int channels;
  double* sums;

  static constexpr int kUnroll = 2, kBlocks = 2;
  struct Fetched {
    Raw<kN, T> a, b, y;
    unsigned mask;
    size_t at;
  };
  __device__ void Begin(int) {}
  __device__ Fetched Fetch(size_t row, int c) const {
    const size_t at = row * channels + c;
    Fetched fetched;
    fetched.a = cuda::Fetch<kN>(static_cast<const T*>(from.a) + at);
    fetched.b = cuda::Fetch<kN>(static_cast<const T*>(from.b) + at);
    if (kMask) {
      fetched.mask = from.mask[at / 8];
    } else {
      fetched.y = cuda::Fetch<kN>(static_cast<const T*>(from.y) + at);
    }
    fetched.at = at;
    return fetched;
  }
  __device__ void Add(const Fetched& fetched, Floats<kN>& sum, Floats<kN>&) const {
    const Floats<kN> a = Widen(fetched.a), b = Widen(fetched.b);
    Floats<kN> y = {};
    if (!kMask) y = Widen(fetched.y);
    Floats<kN> dy;
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const bool passes = kMask ? fetched.mask >> i & 1 : y[i] > 0;
      dy[i] = float(T(passes ? a[i] + b[i] : 0.0f));
      sum[i] += dy[i];
    }
    Store<kN>(static_cast<T*>(from.sum) + fetched.at, dy);
  }
  __device__ void Finish(int c, double sum, double) const { sums[c] = sum; }
};

template <class T>
__global__ void GradSums(GramSizes s, GramGrad g, BatchNormGrad norm, double* sums, float* factors,
                         bool apart) {
  const Place place = PlaceIn(s);
  const int c = place.column;
  const T* const weights = In<T>(g.weights);
  const double2 sum = SumColumn(s, place, [&](int i, double& product, double& total) {
    const size_t at = size_t(i) * s.out + c;
    const double w = float(weights[at]);
    product += w * g.products[at];
    total += w * g.sums[i];
  });
  if (!place.inside || place.below > 0) return;
  const double of_dy = sums[c], mean = norm.mean[c];
  g.off[c] = float(sum.y / double(s.rows) - mean);
  FinishGrad(norm, s.out, s.rows, c, of_dy, sum.x - mean * of_dy, apart ? sums : nullptr, factors);
}

// What backward does with a channel of y: dy is multiplied by `scale`, y less the mean of this
// shard by -slope, and -level is added.
struct Channel {
  float scale, slope, level;
};
__device__ Channel ChannelOf(const GramSizes& s, const GramGrad& g, const BatchNormGrad& norm,
                             const float* factors, int c) {
  const float slope = factors[c];
  return {norm.inv_std[c] * norm.weight[c], slope, fmaf(slope, g.off[c], factors[s.out + c])};
}

template <class T>
__global__ void GradWeights(GramSizes s, GramGrad g, BatchNormGrad norm, const float* factors) {
  ForEachItem(s.weights(), [=](size_t at) {
    const int c = int(at % s.out);
    const Channel channel = ChannelOf(s, g, norm, factors, c);
    const float flat = fmaf(channel.slope, g.covariant[at], channel.level * g.sums[at / s.out]);
    const float made = fmaf(channel.scale, g.products[at], -flat);
    g.d_weights[at] = (norm.accumulate ? g.d_weights[at] : 0) + made;
    const float w = float(In<T>(g.weights)[at]);
    In<T>(g.scaled)[at] = T(channel.scale * w);
    In<T>(g.slopes)[at] = T(-channel.slope * w);
  });
}

// A block for each channel of x. Both products of dx have the mean 0 by themselves, so that little
// is lost where they are rounded, and the mean of dx is right whatever the weights have lost.
template <class T, class R>
__global__ void GradShift(GramSizes s, GramGrad g, BatchNormGrad norm, const double* sums,
                          const float* factors) {
  const int i = int(blockIdx.x);
  const double n = double(s.rows);
  double of_x = 0, of_dy = 0;
  for (int j = int(threadIdx.x); j < s.in; j += kThreads) {
    const size_t at = size_t(i) * s.in + j;
    const T rounded = T(g.bend[at]);
    In<T>(g.bent)[at] = rounded;
    of_x += double(float(rounded)) * g.sums[j] / n;
  }
  for (int c = int(threadIdx.x); c < s.out; c += kThreads) {
    const size_t at = size_t(i) * s.out + c;
    const Channel channel = ChannelOf(s, g, norm, factors, c);
    const float w = float(In<T>(g.weights)[at]);
    const float lost = channel.scale * w - float(In<T>(g.scaled)[at]);
    of_dy += double(channel.level) * w - double(lost) * sums[c] / n;
  }
  of_x = SumBlock(of_x);
  of_dy = SumBlock(of_dy);
  if (threadIdx.x > 0) return;
  const R shift = R(float(-of_dy));
  const float centre = float(-of_x - of_dy - double(float(shift)));  // the smaller one, mostly
  In<R>(g.shift)[i] = shift;
  In<R>(g.centre)[i] = R(centre);
  g.wide_shift[i] = float(shift);
  g.wide_centre[i] = centre;
}

}  // namespace

void LaunchGramCentre(cudaStream_t stream, const GramSizes& s, const float* sums, float* kept_sums,
                      float* gram, Array weights, float* wide) {
  const size_t items = size_t(s.in) * size_t(s.in) + s.weights();
  WithElement(weights.element, [&](auto zero) {
    Centre<<<BlocksFor(items), kThreads, 0, stream>>>(s, sums, kept_sums, gram,
                                                      As<decltype(zero)>(weights), wide);
  });
}

void LaunchGramMeasure(cudaStream_t stream, const GramSizes& s, Array weights,
                       const float* covariant, const float* sums, double* sums_of_y,
                       const BatchNormMeasure& measure, bool apart) {
  WithElement(weights.element, [&](auto zero) {
    MeasureProducts<<<BlocksAcross(s), kSquareThreads, 0, stream>>>(
        s, As<decltype(zero)>(weights), covariant, sums, sums_of_y, measure, apart);
  });
}

void LaunchGramScale(cudaStream_t stream, const GramSizes& s, const GramScale& g) {
  WithElements(g.weights.element, g.shift.element, [&](auto operand, auto result) {
    Scale<decltype(operand), decltype(result)>
        <<<BlocksAcross(s), kSquareThreads, 0, stream>>>(s, g);
  });
}

void LaunchGramGradColumns(cudaStream_t stream, const Columns& g, const void* dy,
                           const BatchNormScratch& scratch) {
  WithPack(g.element, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const DySums<kN, T> sums = {static_cast<const T*>(dy), g.channels, scratch.sums};
    LaunchVisitColumns<kN>(stream, g, sums, scratch.columns_scratch);
  });
}

void LaunchGramGradColumns(cudaStream_t stream, const Columns& g, const BatchNormSummed& summed,
                           const BatchNormScratch& scratch) {
  const auto launch = [&](auto zero, auto pack, auto masked) {
    constexpr int kN = pack.value;
    const SummedDySums<kN, decltype(zero), masked.value> sums = {summed, g.channels, scratch.sums};
    LaunchVisitColumns<kN>(stream, g, sums, scratch.columns_scratch);
  };
  if (summed.mask) {
    WithElement(g.element, [&](auto zero) { launch(zero, Constant<8>(), Constant<true>()); });
  } else {
    WithPack(g.element, g.channels,
             [&](auto zero, auto pack) { launch(zero, pack, Constant<false>()); });
  }
}

void LaunchGramGradSums(cudaStream_t stream, const GramSizes& s, const GramGrad& gram,
                        const BatchNormGrad& norm, const BatchNormScratch& scratch, bool apart) {
  WithElement(gram.weights.element, [&](auto zero) {
    GradSums<decltype(zero)><<<BlocksAcross(s), kSquareThreads, 0, stream>>>(
        s, gram, norm, scratch.sums, scratch.factors, apart);
  });
}

void LaunchGramGradWeights(cudaStream_t stream, const GramSizes& s, const GramGrad& gram,
                           const BatchNormGrad& norm, const BatchNormScratch& scratch) {
  WithElement(gram.weights.element, [&](auto zero) {
    GradWeights<decltype(zero)>
        <<<BlocksFor(s.weights()), kThreads, 0, stream>>>(s, gram, norm, scratch.factors);
  });
}

void LaunchGramGradShift(cudaStream_t stream, const GramSizes& s, const GramGrad& gram,
                         const BatchNormGrad& norm, const BatchNormScratch& scratch) {
  WithElements(gram.weights.element, gram.shift.element, [&](auto operand, auto result) {
    GradShift<decltype(operand), decltype(result)>
        <<<unsigned(s.in), kThreads, 0, stream>>>(s, gram, norm, scratch.sums, scratch.factors);
  });
}

}  // namespace trireme::cuda
