// batch_norm and its fusions: rows (pixels of all samples) x channels.
//
// Statistics in one reading: each chunk of rows finds its own mean and centred squares while it is
// in the cache, and the chunks are combined in order, in double (Chan, Golub, LeVeque 1979). Chunks
// depend on the sizes alone, so the number of threads changes nothing.
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/batch_norm.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "engine/cpu/strips-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

struct Rows {
  size_t rows, channels, chunk;
  Rows(const Call& call, size_t samples)
      : rows(samples * size_t(call.inputs[0].shape.height) * size_t(call.inputs[0].shape.width)),
        channels(size_t(call.inputs[0].shape.channels)),
        chunk(std::clamp<size_t>(8192 / channels, 16, 512)) {}

  size_t chunks() const { return hwy::DivCeil(rows, chunk); }
  size_t length(size_t i) const { return std::min(chunk, rows - i * chunk); }
  // Two floats a channel for each chunk, then two doubles a channel, and one.
  size_t scratch() const { return chunks() * 2 * channels + 4 * channels + 32; }
  double* totals(float* scratch) const {
    return reinterpret_cast<double*>(scratch + hwy::RoundUpTo(chunks() * 2 * channels, 16));
  }
  size_t row_grain() const { return 1 + GrainFor(1) / channels; }
  size_t chunk_grain() const { return 1 + GrainFor(1) / (channels * chunk); }
};

// means[.], squares[.] = mean and sum of centred squares of the rows of x.
void MeasureChunk(const float* x, size_t rows, size_t channels, float* means, float* squares) {
  const V share = hn::Set(Floats(), 1.0f / static_cast<float>(rows));
  ForStrips(channels, [&](auto strip) HWY_ATTR {
    using S = decltype(strip);
    Sums<S> sums, products;
    ForRows(strip, rows, [&](size_t i, size_t u, size_t v) HWY_ATTR {
      sums.parts[u][v] = hn::Add(sums.parts[u][v], strip.Load(x + i * channels + strip.j, v));
    });
    V mean[S::kVectors];
    for (size_t v = 0; v < S::kVectors; ++v) mean[v] = hn::Mul(sums.Total(v), share);
    ForRows(strip, rows, [&](size_t i, size_t u, size_t v) HWY_ATTR {
      const V off = hn::Sub(strip.Load(x + i * channels + strip.j, v), mean[v]);
      products.parts[u][v] = hn::MulAdd(off, off, products.parts[u][v]);
    });
    for (size_t v = 0; v < S::kVectors; ++v) {
      strip.Store(mean[v], means + strip.j, v);
      strip.Store(products.Total(v), squares + strip.j, v);
    }
  });
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
void Measure(const Call& call, const Shard& shard, const Rows& r, float* mean, float* inv_std) {
  const float* x = call.inputs[0].floats();
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

// y = (x - mean) * inv_std * weight + bias, then + residual, then relu.
template <bool kAdd, bool kRelu>
void Normalize(const Call& call, const Shard& shard, const Rows& r, const float* mean,
               const float* inv_std) {
  const float* x = call.inputs[0].floats();
  const float* residual = kAdd ? call.inputs[1].floats() : nullptr;
  float* y = call.outputs[0].floats();
  const float* weight = shard.state + call.parameters[0].begin;
  const float* bias = shard.state + call.parameters[1].begin;
  ParallelFor(*shard.team, r.rows, r.row_grain(), [&](size_t begin, size_t end) HWY_ATTR {
    ForStrips(r.channels, [&](auto strip) HWY_ATTR {
      using S = decltype(strip);
      V m[S::kVectors], scale[S::kVectors], shift[S::kVectors];
      for (size_t v = 0; v < S::kVectors; ++v) {
        m[v] = strip.Load(mean + strip.j, v);
        scale[v] = hn::Mul(strip.Load(inv_std + strip.j, v), strip.Load(weight + strip.j, v));
        shift[v] = strip.Load(bias + strip.j, v);
      }
      ForRows(strip, end - begin, [&](size_t i, size_t, size_t v) HWY_ATTR {
        const size_t at = (begin + i) * r.channels + strip.j;
        V value = hn::MulAdd(hn::Sub(strip.Load(x + at, v), m[v]), scale[v], shift[v]);
        if constexpr (kAdd) value = hn::Add(value, strip.Load(residual + at, v));
        if constexpr (kRelu) value = PositivePart(value);
        strip.Store(value, y + at, v);
      });
    });
  });
}

template <bool kAdd, bool kRelu>
void Forward(const Call& call, const Shard& shard) {
  const Rows r(call, shard.count);
  float *mean = call.outputs[1].floats(), *inv_std = call.outputs[2].floats();
  Measure(call, shard, r, mean, inv_std);
  Normalize<kAdd, kRelu>(call, shard, r, mean, inv_std);
}

// sums[.] = sum of dy, products[.] = sum of dy * (x - mean) over the rows.
void SumChunk(const float* x, const float* dy, const float* mean, size_t rows, size_t channels,
              float* sums, float* products) {
  ForStrips(channels, [&](auto strip) HWY_ATTR {
    using S = decltype(strip);
    Sums<S> sum, product;
    V m[S::kVectors];
    for (size_t v = 0; v < S::kVectors; ++v) m[v] = strip.Load(mean + strip.j, v);
    ForRows(strip, rows, [&](size_t i, size_t u, size_t v) HWY_ATTR {
      const size_t at = i * channels + strip.j;
      const V g = strip.Load(dy + at, v), off = hn::Sub(strip.Load(x + at, v), m[v]);
      sum.parts[u][v] = hn::Add(sum.parts[u][v], g);
      product.parts[u][v] = hn::MulAdd(g, off, product.parts[u][v]);
    });
    for (size_t v = 0; v < S::kVectors; ++v) {
      strip.Store(sum.Total(v), sums + strip.j, v);
      strip.Store(product.Total(v), products + strip.j, v);
    }
  });
}

// dx = factor * dy - (x - mean) * slope - level, per channel.
void GradRows(const Rows& r, const float* x, const float* dy, const float* mean,
              const float* factor, const float* slope, const float* level, float* dx, size_t begin,
              size_t end) {
  ForStrips(r.channels, [&](auto strip) HWY_ATTR {
    using S = decltype(strip);
    V m[S::kVectors], f[S::kVectors], s[S::kVectors], l[S::kVectors];
    for (size_t v = 0; v < S::kVectors; ++v) {
      m[v] = strip.Load(mean + strip.j, v);
      f[v] = strip.Load(factor + strip.j, v);
      s[v] = strip.Load(slope + strip.j, v);
      l[v] = strip.Load(level + strip.j, v);
    }
    ForRows(strip, end - begin, [&](size_t i, size_t, size_t v) HWY_ATTR {
      const size_t at = (begin + i) * r.channels + strip.j;
      const V flat = hn::MulAdd(hn::Sub(strip.Load(x + at, v), m[v]), s[v], l[v]);
      strip.Store(hn::MulSub(f[v], strip.Load(dy + at, v), flat), dx + at, v);
    });
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
  for (size_t c = 0; c < r.channels; ++c) {
    shard.scratch[c] = 1 / std::sqrt(variance[c] + call.attributes.epsilon);
  }
  Normalize<false, false>(call, shard, r, shard.state + call.statistics[0].begin, shard.scratch);
}
size_t BatchNormInferenceScratch(const Call& call, size_t, size_t) {
  return size_t(call.inputs[0].shape.channels);
}

void BatchNormGrad(const Call& call, const Shard& shard) {
  const Rows r(call, shard.count);
  const float *x = call.inputs[0].floats(), *dy = call.inputs[3].floats();
  const float *mean = call.inputs[1].floats(), *inv_std = call.inputs[2].floats();
  ParallelFor(*shard.team, r.chunks(), r.chunk_grain(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t at = i * r.chunk * r.channels;
      float* part = shard.scratch + i * 2 * r.channels;
      SumChunk(x + at, dy + at, mean, r.length(i), r.channels, part, part + r.channels);
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
  float *factor = reinterpret_cast<float*>(totals + 2 * r.channels + 2),
        *slope = factor + r.channels, *level = slope + r.channels;
  for (size_t c = 0; c < r.channels; ++c) {
    const double s = inv_std[c], scale = weight[c] * s;
    factor[c] = static_cast<float>(scale);
    slope[c] = static_cast<float>(scale * s * s * totals[r.channels + c] / n);
    level[c] = static_cast<float>(scale * totals[c] / n);
  }
  float* dx = call.outputs[0].floats();
  ParallelFor(*shard.team, r.rows, r.row_grain(), [&](size_t begin, size_t end) {
    GradRows(r, x, dy, mean, factor, slope, level, dx, begin, end);
  });
}
size_t BatchNormGradScratch(const Call& call, size_t samples, size_t) {
  const Rows r(call, samples);
  return r.scratch() + 3 * r.channels;
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
