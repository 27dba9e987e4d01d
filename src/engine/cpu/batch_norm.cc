// batch_norm and its fusions: rows (pixels of all samples) x channels.
//
// Statistics in one reading: each chunk of rows finds its own mean and centred squares while it is
// in the cache, and the chunks are combined in order, in double (Chan, Golub, LeVeque 1979). Chunks
// depend on the sizes alone, so the number of threads changes nothing.
#include <algorithm>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/batch_norm.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "engine/cpu/lines-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

// Values of a chunk, which is in the second cache when it is read again. What each chunk found is
// written and read again too, so there should not be many; but one for each sample, for threads.
constexpr size_t kChunk = 64 * 1024;

struct Rows {
  size_t rows, channels, chunk;
  Rows(const Call& call, size_t samples)
      : rows(samples * Pixels(call)),
        channels(size_t(call.inputs[0].shape.channels)),
        chunk(std::clamp<size_t>(std::min(kChunk / channels, Pixels(call)), 16, 512)) {}

  static size_t Pixels(const Call& call) {
    return size_t(call.inputs[0].shape.height) * size_t(call.inputs[0].shape.width);
  }
  size_t chunks() const { return hwy::DivCeil(rows, chunk); }
  size_t length(size_t i) const { return std::min(chunk, rows - i * chunk); }
  // Two floats a channel for each chunk, then two doubles a channel, and one, then three floats a
  // channel.
  size_t scratch() const { return chunks() * 2 * channels + 7 * channels + 32; }
  double* totals(float* scratch) const {
    return reinterpret_cast<double*>(scratch + hwy::RoundUpTo(chunks() * 2 * channels, 16));
  }
  float* factors(float* scratch) const {
    return reinterpret_cast<float*>(totals(scratch) + 2 * channels + 2);
  }
  size_t row_grain() const { return 1 + GrainFor(1) / channels; }
  size_t chunk_grain() const { return 1 + GrainFor(1) / (channels * chunk); }
};

// Calls each(at, c, n) for n channels from c on of all rows [begin, end), as they lie in memory:
// what belongs to a channel comes from the first cache each time, but each line from memory only
// once and in order. Before each line, fetch(at).
template <class T, class Fetch, class F>
HWY_INLINE void ForRowLines(const Rows& r, size_t begin, size_t end, const Fetch& fetch,
                            const F& each) {
  for (size_t row = begin; row < end; ++row) {
    const size_t first = row * r.channels;
    ForLines<T>(
        0, r.channels, [&](size_t c) TRIREME_INLINED { fetch(first + c); },
        [&](size_t c, size_t n) TRIREME_INLINED { each(first + c, c, n); });
  }
}

// Rows that are read side by side, line by line: sums stay in registers, and what is read twice, in
// the first cache. As many as have room there whatever lies between them.
constexpr size_t kBlockRows = 8;

// Calls each(row, rows, c, n) for n channels from c on of `rows` rows from `row` on, block by
// block; before each line of channels, fetch(its first place in the block).
template <class T, class Fetch, class F>
HWY_INLINE void ForBlocks(size_t rows, size_t channels, const Fetch& fetch, const F& each) {
  const auto block = [&](size_t row, auto count) TRIREME_INLINED {
    ForLines<T>(
        0, channels, [&](size_t c) TRIREME_INLINED { fetch(row * channels + c); },
        [&](size_t c, size_t n) TRIREME_INLINED { each(row, count, c, n); });
  };
  constexpr std::integral_constant<size_t, kBlockRows> kWhole;
  size_t row = 0;
  for (; row + kWhole <= rows; row += kWhole) block(row, kWhole);
  if (row < rows) block(row, rows - row);
}

// Fetches a line of each row of the next block (of the next chunk, at the end of one), or of one
// that is kAhead bytes away.
template <class T>
HWY_INLINE void FetchBlock(const T* p, size_t channels) {
  p += std::max(kBlockRows * channels, kAhead / sizeof(T));
#pragma GCC unroll 8
  for (size_t i = 0; i < kBlockRows; ++i) __builtin_prefetch(p + i * channels, 0, 2);
}

// means[.], squares[.] = mean and sum of centred squares of the rows of x. Each block of rows finds
// its own while it is in the first cache, and they are combined as below.
template <class T>
void MeasureChunk(const T* x, size_t rows, size_t channels, float* means, float* squares) {
  std::fill_n(means, channels, 0.0f);
  std::fill_n(squares, channels, 0.0f);
  const auto fetch = [&](size_t at) TRIREME_INLINED { FetchBlock(x + at, channels); };
  const auto measure = [&](size_t row, auto count, size_t c, size_t n) TRIREME_INLINED {
    const T* from = x + row * channels + c;
    const float seen = static_cast<float>(row), block = static_cast<float>(count);
    const float all = seen + block;
    V sum = hn::Zero(Floats()), square = hn::Zero(Floats());
    for (size_t i = 0; i < count; ++i) {
      sum = hn::Add(sum, LoadN(from + i * channels, n));
    }
    const V mean = hn::Mul(sum, hn::Set(Floats(), 1 / block));
    for (size_t i = 0; i < count; ++i) {
      const V off = hn::Sub(LoadN(from + i * channels, n), mean);
      square = hn::MulAdd(off, off, square);
    }
    const V before = LoadN(means + c, n), off = hn::Sub(mean, before);
    const V to_mean = hn::Set(Floats(), block / all);
    const V to_square = hn::Set(Floats(), block * seen / all);
    StoreN(hn::MulAdd(off, to_mean, before), means + c, n);
    square = hn::MulAdd(hn::Mul(off, off), to_square, square);
    StoreN(hn::Add(LoadN(squares + c, n), square), squares + c, n);
  };
  ForBlocks<T>(rows, channels, fetch, measure);
}

// Combines the chunks' results into totals: means, then sums of centred squares.
void CombineChunks(const Rows& r, const float* parts, double* totals) {
  double *mean = totals, *square = totals + r.channels;
  std::fill_n(totals, 2 * r.channels, 0.0);
  double seen = 0;
  for (size_t i = 0; i < r.chunks(); ++i) {
    const double n = static_cast<double>(r.length(i)), all = seen + n;
    const double to_mean = n / all, to_square = n * seen / all;
    const float *means = parts + i * 2 * r.channels, *squares = means + r.channels;
    for (size_t c = 0; c < r.channels; ++c) {
      const double off = means[c] - mean[c];
      mean[c] += off * to_mean;
      square[c] += squares[c] + off * off * to_square;
    }
    seen = all;
  }
}

// The same totals over the shards of all ranks, and how many rows they have. In double the plain
// sums of squares lose nothing that matters.
double CombineShards(const Rows& r, const Batch& batch, double* totals) {
  const double own = static_cast<double>(r.rows);
  double *sum = totals, *square = totals + r.channels, &rows = totals[2 * r.channels];
  for (size_t c = 0; c < r.channels; ++c) {
    square[c] += own * sum[c] * sum[c];
    sum[c] *= own;
  }
  rows = own;
  batch.sum_over_shards({totals, 2 * r.channels + 1});
  for (size_t c = 0; c < r.channels; ++c) {
    sum[c] /= rows;
    square[c] = std::max(0.0, square[c] - rows * sum[c] * sum[c]);
  }
  return rows;
}

// Mean and 1 / deviation of the shard, for the rows that follow and for backward; also the
// statistics that the summand carries.
template <class T>
void Measure(const Call& call, const Shard& shard, const Rows& r, float* mean, float* inv_std) {
  const T* x = call.inputs[0].as<T>();
  ParallelFor(*shard.team, r.chunks(), r.chunk_grain(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      float* part = shard.scratch + i * 2 * r.channels;
      MeasureChunk(x + i * r.chunk * r.channels, r.length(i), r.channels, part, part + r.channels);
    }
  });
  double* totals = r.totals(shard.scratch);
  CombineChunks(r, shard.scratch, totals);
  const double n = shard.batch->sum_over_shards ? CombineShards(r, *shard.batch, totals)
                                                : static_cast<double>(r.rows);
  const double unbiased = n > 1 ? n - 1 : 1;
  const float scale = shard.batch->statistics_scale;
  float* seen_mean = shard.summand + call.statistics[0].begin;
  float* seen_variance = shard.summand + call.statistics[1].begin;
  for (size_t c = 0; c < r.channels; ++c) {
    const double square = totals[r.channels + c];
    mean[c] = static_cast<float>(totals[c]);
    inv_std[c] = static_cast<float>(1 / std::sqrt(square / n + call.attributes.epsilon));
    const float variance = static_cast<float>(square / unbiased);
    seen_mean[c] = (shard.accumulate ? seen_mean[c] : 0) + scale * mean[c];
    seen_variance[c] = (shard.accumulate ? seen_variance[c] : 0) + scale * variance;
  }
}

// What a channel's values, less its mean, are multiplied by, and what is added.
struct Affine {
  const float *scale, *bias;
  HWY_INLINE V Of(V off, size_t c, size_t n) const {
    return hn::MulAdd(off, LoadN(scale + c, n), LoadN(bias + c, n));
  }
};
Affine Scaled(const Call& call, const Shard& shard, const Rows& r, const float* inv_std,
              float* scale) {
  const float* weight = shard.state + call.parameters[0].begin;
  for (size_t c = 0; c < r.channels; ++c) scale[c] = inv_std[c] * weight[c];
  return {scale, shard.state + call.parameters[1].begin};
}

// y = (x - mean) * inv_std * weight + bias, then + residual, then relu.
template <class T, bool kAdd, bool kRelu>
void Normalize(const Call& call, const Shard& shard, const Rows& r, const float* mean,
               const float* inv_std, float* scale) {
  const T* x = call.inputs[0].as<T>();
  const T* residual = kAdd ? call.inputs[1].as<T>() : nullptr;
  T* y = call.outputs[0].as<T>();
  const bool stream = MayStream(y, r.rows * r.channels, r.channels);
  const Affine affine = Scaled(call, shard, r, inv_std, scale);
  ParallelFor(*shard.team, r.rows, r.row_grain(), [&](size_t begin, size_t end) {
    const auto fetch = [&](size_t at) TRIREME_INLINED {
      FetchAhead(x + at);
      if constexpr (kAdd) FetchAhead(residual + at);
    };
    ForRowLines<T>(r, begin, end, fetch, [&](size_t at, size_t c, size_t n) TRIREME_INLINED {
      V value = affine.Of(hn::Sub(LoadN(x + at, n), LoadN(mean + c, n)), c, n);
      if constexpr (kAdd) value = hn::Add(value, LoadN(residual + at, n));
      if constexpr (kRelu) value = PositivePart(value);
      StoreN(value, y + at, n, stream);
    });
    hwy::FlushStream();
  });
}

template <bool kAdd, bool kRelu>
void Forward(const Call& call, const Shard& shard) {
  const Rows r(call, shard.count);
  float *mean = call.outputs[1].floats(), *inv_std = call.outputs[2].floats();
  WithElement(call.inputs[0], [&](auto element) {
    using T = decltype(element);
    Measure<T>(call, shard, r, mean, inv_std);
    Normalize<T, kAdd, kRelu>(call, shard, r, mean, inv_std, r.factors(shard.scratch));
  });
}

// dy where the relu behind let y pass, to the bit as forward did; without one, dy.
template <bool kRelu>
HWY_INLINE V Passed(V dy, V off, const Affine& affine, size_t c, size_t n) {
  if constexpr (!kRelu) return dy;
  return hn::IfThenElseZero(hn::Gt(affine.Of(off, c, n), hn::Zero(Floats())), dy);
}

// sums[.] = sum of dy, products[.] = sum of dy * (x - mean) over the rows.
template <bool kRelu, class T>
void SumChunk(const T* x, const T* dy, const float* mean, const Affine& affine, size_t rows,
              size_t channels, float* sums, float* products) {
  std::fill_n(sums, channels, 0.0f);
  std::fill_n(products, channels, 0.0f);
  const auto fetch = [&](size_t at) TRIREME_INLINED {
    FetchBlock(x + at, channels);
    FetchBlock(dy + at, channels);
  };
  const auto add = [&](size_t row, auto count, size_t c, size_t n) TRIREME_INLINED {
    const size_t at = row * channels + c;
    const V m = LoadN(mean + c, n);
    V sum = LoadN(sums + c, n), product = LoadN(products + c, n);
    for (size_t i = 0; i < count; ++i) {
      const V off = hn::Sub(LoadN(x + at + i * channels, n), m);
      const V g = Passed<kRelu>(LoadN(dy + at + i * channels, n), off, affine, c, n);
      sum = hn::Add(sum, g);
      product = hn::MulAdd(g, off, product);
    }
    StoreN(sum, sums + c, n);
    StoreN(product, products + c, n);
  };
  ForBlocks<T>(rows, channels, fetch, add);
}

// dx = scale * dy - (x - mean) * slope - level, per channel.
template <bool kRelu, class T>
void GradRows(const Rows& r, const T* x, const T* dy, const float* mean, const Affine& affine,
              const float* slope, const float* level, T* dx, size_t begin, size_t end) {
  const bool stream = dx != dy && MayStream(dx, r.rows * r.channels, r.channels);
  const auto fetch = [&](size_t at) TRIREME_INLINED {
    FetchAhead(x + at);
    FetchAhead(dy + at);
  };
  ForRowLines<T>(r, begin, end, fetch, [&](size_t at, size_t c, size_t n) TRIREME_INLINED {
    const V off = hn::Sub(LoadN(x + at, n), LoadN(mean + c, n));
    const V flat = hn::MulAdd(off, LoadN(slope + c, n), LoadN(level + c, n));
    const V g = Passed<kRelu>(LoadN(dy + at, n), off, affine, c, n);
    const V value = hn::MulSub(LoadN(affine.scale + c, n), g, flat);
    StoreN(value, dx + at, n, stream);
  });
  hwy::FlushStream();
}

template <bool kRelu, class T>
void Backward(const Call& call, const Shard& shard) {
  const Rows r(call, shard.count);
  const T *x = call.inputs[0].as<T>(), *dy = call.inputs[3].as<T>();
  const float *mean = call.inputs[1].floats(), *inv_std = call.inputs[2].floats();
  float *scale = r.factors(shard.scratch), *slope = scale + r.channels, *level = slope + r.channels;
  const Affine affine = Scaled(call, shard, r, inv_std, scale);
  ParallelFor(*shard.team, r.chunks(), r.chunk_grain(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t at = i * r.chunk * r.channels;
      float* part = shard.scratch + i * 2 * r.channels;
      SumChunk<kRelu>(x + at, dy + at, mean, affine, r.length(i), r.channels, part,
                      part + r.channels);
    }
  });
  double* totals = r.totals(shard.scratch);  // sums of dy, sums of dy (x - mean)
  std::fill_n(totals, 2 * r.channels, 0.0);
  for (size_t i = 0; i < r.chunks(); ++i) {
    const float* part = shard.scratch + i * 2 * r.channels;
    for (size_t c = 0; c < 2 * r.channels; ++c) totals[c] += part[c];
  }
  const float* weight = shard.state + call.parameters[0].begin;
  float* dweight = shard.summand + call.parameters[0].begin;
  float* dbias = shard.summand + call.parameters[1].begin;
  for (size_t c = 0; c < r.channels; ++c) {
    dweight[c] = (shard.accumulate ? dweight[c] : 0) +
                 static_cast<float>(totals[r.channels + c] * inv_std[c]);
    dbias[c] = (shard.accumulate ? dbias[c] : 0) + static_cast<float>(totals[c]);
  }
  double& n = totals[2 * r.channels];
  n = static_cast<double>(r.rows);
  if (shard.batch->sum_over_shards) shard.batch->sum_over_shards({totals, 2 * r.channels + 1});
  for (size_t c = 0; c < r.channels; ++c) {
    const double s = inv_std[c], factor = weight[c] * s;
    slope[c] = static_cast<float>(factor * s * s * totals[r.channels + c] / n);
    level[c] = static_cast<float>(factor * totals[c] / n);
  }
  T* dx = call.outputs[0].as<T>();
  ParallelFor(*shard.team, r.rows, r.row_grain(), [&](size_t begin, size_t end) {
    GradRows<kRelu>(r, x, dy, mean, affine, slope, level, dx, begin, end);
  });
}

}  // namespace

void BatchNorm(const Call& call, const Shard& shard) { Forward<false, false>(call, shard); }
void BatchNormRelu(const Call& call, const Shard& shard) { Forward<false, true>(call, shard); }
void BatchNormAdd(const Call& call, const Shard& shard) { Forward<true, false>(call, shard); }
void BatchNormAddRelu(const Call& call, const Shard& shard) { Forward<true, true>(call, shard); }
size_t BatchNormScratch(const Call& call, size_t samples, size_t) {
  return Rows(call, samples).scratch();
}

void BatchNormInference(const Call& call, const Shard& shard) {
  const Rows r(call, shard.count);
  const float* variance = shard.state + call.statistics[1].begin;
  float* inv_std = shard.scratch;
  for (size_t c = 0; c < r.channels; ++c) {
    inv_std[c] = 1 / std::sqrt(variance[c] + call.attributes.epsilon);
  }
  WithElement(call.inputs[0], [&](auto element) {
    Normalize<decltype(element), false, false>(
        call, shard, r, shard.state + call.statistics[0].begin, inv_std, inv_std + r.channels);
  });
}
size_t BatchNormInferenceScratch(const Call& call, size_t, size_t) {
  return 2 * size_t(call.inputs[0].shape.channels);
}

void BatchNormGrad(const Call& call, const Shard& shard) {
  WithElement(call.inputs[0],
              [&](auto element) { Backward<false, decltype(element)>(call, shard); });
}
void BatchNormReluGrad(const Call& call, const Shard& shard) {
  WithElement(call.inputs[0],
              [&](auto element) { Backward<true, decltype(element)>(call, shard); });
}
size_t BatchNormGradScratch(const Call& call, size_t samples, size_t) {
  return Rows(call, samples).scratch();
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
