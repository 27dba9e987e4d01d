// layer_norm: the values of each sample, or of each token, to mean 0 and variance 1.
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/layer_norm.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "engine/cpu/product-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

// The sum of f(i, n) over stretches of vectors; lanes beyond n must be zero. Stretches of 4096
// values are added up in double.
template <class F>
HWY_INLINE double SumOver(size_t count, const F& f) {
  constexpr size_t kStretch = 4096;
  double total = 0;
  for (size_t begin = 0; begin < count; begin += kStretch) {
    V sum = hn::Zero(Floats());
    ForLanes(begin, std::min(count, begin + kStretch),
             [&](size_t i, size_t n) TRIREME_INLINED { sum = hn::Add(sum, f(i, n)); });
    total += Sum(sum);
  }
  return total;
}

HWY_INLINE V OnlyFirst(V v, size_t n) {
  return n == kLanes ? v : hn::IfThenElseZero(hn::FirstN(Floats(), n), v);
}

template <class T>
void NormalizeSample(const T* x, size_t size, float epsilon, const float* weight, const float* bias,
                     T* y, float* mean_out, float* inv_std_out) {
  const double sum =
      SumOver(size, [&](size_t i, size_t n) TRIREME_INLINED { return LoadN(x + i, n); });
  const float mean = static_cast<float>(sum / static_cast<double>(size));
  const V m = hn::Set(Floats(), mean);
  const double squares = SumOver(size, [&](size_t i, size_t n) TRIREME_INLINED {
    const V off = OnlyFirst(hn::Sub(LoadN(x + i, n), m), n);
    return hn::Mul(off, off);
  });
  const float inv_std =
      static_cast<float>(1 / std::sqrt(squares / static_cast<double>(size) + epsilon));
  const V scale = hn::Set(Floats(), inv_std);
  ForLanes(0, size, [&](size_t i, size_t n) TRIREME_INLINED {
    V value = hn::Mul(hn::Sub(LoadN(x + i, n), m), scale);
    if (weight) value = hn::MulAdd(value, LoadN(weight + i, n), LoadN(bias + i, n));
    StoreN(value, y + i, n);
  });
  *mean_out = mean;
  *inv_std_out = inv_std;
}

// With g = dy * weight and z the normalised value: dx = inv_std (g - mean(g) - z mean(g z)).
template <class T>
void GradSample(const T* x, const T* dy, size_t size, float mean, float inv_std,
                const float* weight, T* dx) {
  const V m = hn::Set(Floats(), mean), scale = hn::Set(Floats(), inv_std);
  const auto gradient = [&](size_t i, size_t n) TRIREME_INLINED {
    const V g = LoadN(dy + i, n);
    return weight ? hn::Mul(g, LoadN(weight + i, n)) : g;
  };
  const auto normalized = [&](size_t i, size_t n) TRIREME_INLINED {
    return hn::Mul(hn::Sub(LoadN(x + i, n), m), scale);
  };
  const double share = 1.0 / static_cast<double>(size);
  const double level = share * SumOver(size, gradient);
  const double slope =
      share * SumOver(size, [&](size_t i, size_t n) TRIREME_INLINED {
        return hn::Mul(gradient(i, n), normalized(i, n));  // the gradient's lanes beyond n are zero
      });
  const V a = hn::Set(Floats(), static_cast<float>(level));
  const V b = hn::Set(Floats(), static_cast<float>(slope));
  ForLanes(0, size, [&](size_t i, size_t n) TRIREME_INLINED {
    const V off = hn::Sub(gradient(i, n), a);
    StoreN(hn::Mul(scale, hn::NegMulAdd(normalized(i, n), b, off)), dx + i, n);
  });
}

// Samples, or their tokens, and the values of each.
struct Populations {
  size_t count, size;
  Populations(const Call& call, size_t samples) {
    const Value& x = call.inputs[0];
    size = call.attributes.tokens ? static_cast<size_t>(x.shape.channels) : x.size();
    count = samples * (x.size() / size);
  }
};

// Populations whose gradients of weight and bias are summed in one go. It depends on no number of
// threads.
constexpr size_t kChunk = 128;

// Gradients of weight and bias at values [begin, end), over populations [first, last) in order.
template <class T>
void GradAffine(const Call& call, size_t size, size_t first, size_t last, size_t begin, size_t end,
                bool add, float* dweight, float* dbias) {
  const T *x = call.inputs[0].as<T>(), *dy = call.inputs[3].as<T>();
  const float *mean = call.inputs[1].floats(), *inv_std = call.inputs[2].floats();
  ForLanes(begin, end, [&](size_t i, size_t n) TRIREME_INLINED {
    V product = add ? LoadN(dweight + i, n) : hn::Zero(Floats());
    V sum = add ? LoadN(dbias + i, n) : hn::Zero(Floats());
    for (size_t s = first; s < last; ++s) {
      const V g = LoadN(dy + s * size + i, n);
      const V off = hn::Sub(LoadN(x + s * size + i, n), hn::Set(Floats(), mean[s]));
      product = hn::MulAdd(g, hn::Mul(off, hn::Set(Floats(), inv_std[s])), product);
      sum = hn::Add(sum, g);
    }
    StoreN(product, dweight + i, n);
    StoreN(sum, dbias + i, n);
  });
}

template <class T>
void Normalize(const Call& call, const Shard& shard) {
  const Populations all(call, shard.count);
  const size_t size = all.size;
  const float* weight = nullptr;
  const float* bias = nullptr;
  if (call.attributes.affine) {
    weight = shard.state + call.parameters[0].begin;
    bias = shard.state + call.parameters[1].begin;
  }
  const T* x = call.inputs[0].as<T>();
  T* y = call.outputs[0].as<T>();
  float *mean = call.outputs[1].floats(), *inv_std = call.outputs[2].floats();
  ParallelFor(*shard.team, all.count, 1 + GrainFor(4) / size, [&](size_t begin, size_t end) {
    for (size_t s = begin; s < end; ++s) {
      NormalizeSample(x + s * size, size, call.attributes.epsilon, weight, bias, y + s * size,
                      mean + s, inv_std + s);
    }
  });
}

// Gradients of the input, for populations [first, last).
template <class T>
void GradSamples(const Call& call, const Shard& shard, size_t size, size_t first, size_t last) {
  const float* weight = call.attributes.affine ? shard.state + call.parameters[0].begin : nullptr;
  const T *x = call.inputs[0].as<T>(), *dy = call.inputs[3].as<T>();
  const float *mean = call.inputs[1].floats(), *inv_std = call.inputs[2].floats();
  T* dx = call.outputs[0].as<T>();
  for (size_t s = first; s < last; ++s) {
    GradSample(x + s * size, dy + s * size, size, mean[s], inv_std[s], weight, dx + s * size);
  }
}

template <class T>
void Grad(const Call& call, const Shard& shard) {
  const Populations all(call, shard.count);
  const size_t size = all.size;
  const bool affine = call.attributes.affine;
  if (!affine || all.count <= kChunk) {
    ParallelFor(*shard.team, all.count, 1 + GrainFor(6) / size,
                [&](size_t begin, size_t end) { GradSamples<T>(call, shard, size, begin, end); });
  }
  if (!affine) return;
  float* dweight = shard.summand + call.parameters[0].begin;
  float* dbias = shard.summand + call.parameters[1].begin;
  if (all.count <= kChunk) {
    ParallelFor(*shard.team, size, 1 + GrainFor(2) / all.count, [&](size_t begin, size_t end) {
      GradAffine<T>(call, size, 0, all.count, begin, end, shard.accumulate, dweight, dbias);
    });
    return;
  }
  // Both of a chunk while a cache holds it.
  const size_t chunks = hwy::DivCeil(all.count, kChunk);
  float *products = shard.scratch, *sums = products + chunks * size, *rest = sums + chunks * size;
  ParallelFor(*shard.team, chunks, 1 + GrainFor(8) / (kChunk * size),
              [&](size_t begin, size_t end) {
                for (size_t c = begin; c < end; ++c) {
                  const size_t first = c * kChunk, last = std::min(all.count, first + kChunk);
                  GradSamples<T>(call, shard, size, first, last);
                  GradAffine<T>(call, size, first, last, 0, size, false, products + c * size,
                                sums + c * size);
                }
              });
  SumRows(products, chunks, size, dweight, shard.accumulate, rest, *shard.team);
  SumRows(sums, chunks, size, dbias, shard.accumulate, rest, *shard.team);
}

}  // namespace

void LayerNorm(const Call& call, const Shard& shard) {
  WithElement(call.inputs[0], [&](auto element) { Normalize<decltype(element)>(call, shard); });
}

void LayerNormGrad(const Call& call, const Shard& shard) {
  WithElement(call.inputs[0], [&](auto element) { Grad<decltype(element)>(call, shard); });
}

size_t LayerNormGradScratch(const Call& call, size_t samples, size_t) {
  const Populations all(call, samples);
  const size_t chunks = hwy::DivCeil(all.count, kChunk);
  return 2 * chunks * all.size + SumRowsScratch(chunks, all.size);
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
