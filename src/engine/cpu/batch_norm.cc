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
  // Two floats a channel for each chunk, then two doubles a channel.
  size_t scratch() const { return chunks() * 2 * channels + 4 * channels + 16; }
  double* totals(float* scratch) const {
    return reinterpret_cast<double*>(scratch + hwy::RoundUpTo(chunks() * 2 * channels, 16));
  }
  size_t row_grain() const { return 1 + GrainFor(1) / channels; }
  size_t chunk_grain() const { return 1 + GrainFor(1) / (channels * chunk); }
};

// Calls strip(N, j, n) to cover the channels: N vectors at j, of which the last has n lanes.
template <class F>
HWY_INLINE void ForStrips(size_t channels, const F& strip) {
  size_t j = 0;
  for (; j + 4 * kLanes <= channels; j += 4 * kLanes) {
    strip(std::integral_constant<size_t, 4>(), j, kLanes);
  }
  for (; j < channels; j += kLanes) {
    strip(std::integral_constant<size_t, 1>(), j, std::min(kLanes, channels - j));
  }
}

// means[.], squares[.] = mean and sum of centred squares of the rows of x.
void MeasureChunk(const float* x, size_t rows, size_t channels, float* means, float* squares) {
  const V share = hn::Set(Floats(), 1.0f / static_cast<float>(rows));
  ForStrips(channels, [&](auto vectors, size_t j, size_t n) HWY_ATTR {
    constexpr size_t N = decltype(vectors)::value;
    V sum[N], square[N];
    for (size_t v = 0; v < N; ++v) sum[v] = square[v] = hn::Zero(Floats());
    for (size_t i = 0; i < rows; ++i) {
      const float* at = x + i * channels + j;
      for (size_t v = 0; v < N; ++v) sum[v] = hn::Add(sum[v], LoadN(at + v * kLanes, n));
    }
    for (size_t v = 0; v < N; ++v) sum[v] = hn::Mul(sum[v], share);
    for (size_t i = 0; i < rows; ++i) {
      const float* at = x + i * channels + j;
      for (size_t v = 0; v < N; ++v) {
        const V off = hn::Sub(LoadN(at + v * kLanes, n), sum[v]);
        square[v] = hn::MulAdd(off, off, square[v]);
      }
    }
    for (size_t v = 0; v < N; ++v) {
      StoreN(sum[v], means + j + v * kLanes, n);
      StoreN(square[v], squares + j + v * kLanes, n);
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
  const double n = static_cast<double>(r.rows), unbiased = r.rows > 1 ? n - 1 : 1;
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
    ForStrips(r.channels, [&](auto vectors, size_t j, size_t n) HWY_ATTR {
      constexpr size_t N = decltype(vectors)::value;
      V m[N], scale[N], shift[N];
      for (size_t v = 0; v < N; ++v) {
        const size_t c = j + v * kLanes;
        m[v] = LoadN(mean + c, n);
        scale[v] = hn::Mul(LoadN(inv_std + c, n), LoadN(weight + c, n));
        shift[v] = LoadN(bias + c, n);
      }
      for (size_t i = begin; i < end; ++i) {
        for (size_t v = 0; v < N; ++v) {
          const size_t at = i * r.channels + j + v * kLanes;
          V value = hn::MulAdd(hn::Sub(LoadN(x + at, n), m[v]), scale[v], shift[v]);
          if constexpr (kAdd) value = hn::Add(value, LoadN(residual + at, n));
          if constexpr (kRelu) value = PositivePart(value);
          StoreN(value, y + at, n);
        }
      }
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
  ForStrips(channels, [&](auto vectors, size_t j, size_t n) HWY_ATTR {
    constexpr size_t N = decltype(vectors)::value;
    V sum[N], product[N], m[N];
    for (size_t v = 0; v < N; ++v) {
      sum[v] = product[v] = hn::Zero(Floats());
      m[v] = LoadN(mean + j + v * kLanes, n);
    }
    for (size_t i = 0; i < rows; ++i) {
      for (size_t v = 0; v < N; ++v) {
        const size_t at = i * channels + j + v * kLanes;
        const V g = LoadN(dy + at, n);
        sum[v] = hn::Add(sum[v], g);
        product[v] = hn::MulAdd(g, hn::Sub(LoadN(x + at, n), m[v]), product[v]);
      }
    }
    for (size_t v = 0; v < N; ++v) {
      StoreN(sum[v], sums + j + v * kLanes, n);
      StoreN(product[v], products + j + v * kLanes, n);
    }
  });
}

// dx = factor * dy - (x - mean) * slope - level, per channel.
void GradRows(const Rows& r, const float* x, const float* dy, const float* mean,
              const float* factor, const float* slope, const float* level, float* dx, size_t begin,
              size_t end) {
  ForStrips(r.channels, [&](auto vectors, size_t j, size_t n) HWY_ATTR {
    constexpr size_t N = decltype(vectors)::value;
    V m[N], f[N], s[N], l[N];
    for (size_t v = 0; v < N; ++v) {
      const size_t c = j + v * kLanes;
      m[v] = LoadN(mean + c, n);
      f[v] = LoadN(factor + c, n);
      s[v] = LoadN(slope + c, n);
      l[v] = LoadN(level + c, n);
    }
    for (size_t i = begin; i < end; ++i) {
      for (size_t v = 0; v < N; ++v) {
        const size_t at = i * r.channels + j + v * kLanes;
        const V off = hn::Sub(LoadN(x + at, n), m[v]);
        const V flat = hn::MulAdd(off, s[v], l[v]);
        StoreN(hn::MulSub(f[v], LoadN(dy + at, n), flat), dx + at, n);
      }
    }
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
  float *factor = reinterpret_cast<float*>(totals + 2 * r.channels), *slope = factor + r.channels,
        *level = slope + r.channels;
  for (size_t c = 0; c < r.channels; ++c) {
    const double n = static_cast<double>(r.rows), s = inv_std[c];
    const double scale = weight[c] * s;
    factor[c] = static_cast<float>(scale);
    slope[c] = static_cast<float>(scale * s * s * totals[r.channels + c] / n);
    level[c] = static_cast<float>(scale * totals[c] / n);
    dweight[c] =
        (shard.accumulate ? dweight[c] : 0) + static_cast<float>(totals[r.channels + c] * s);
    dbias[c] = (shard.accumulate ? dbias[c] : 0) + static_cast<float>(totals[c]);
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
