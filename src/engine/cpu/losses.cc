// Losses, their gradients and the tally of a shard. Each sample is one row of outputs.
#include <cmath>

#include "base/label.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/losses.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

float LargestOf(const float* x, size_t n) {
  const Floats d;
  if (n < kLanes) {
    float most = x[0];
    for (size_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
    return most;
  }
  V most = hn::LoadU(d, x + n - kLanes);
  for (size_t i = 0; i + kLanes <= n; i += kLanes) most = hn::Max(most, hn::LoadU(d, x + i));
  return Largest(most);
}

// p = softmax(x); returns the logarithm of the sum of the exponentials.
float Softmax(const float* x, size_t n, float* p) {
  const Floats d;
  const float most = LargestOf(x, n);
  const V offset = hn::Set(d, most);
  V sum = hn::Zero(d);
  ForLanes(0, n, [&](size_t i, size_t part) TRIREME_INLINED {
    V e = Exponential(hn::Sub(LoadN(x + i, part), offset));
    if (part < kLanes) e = hn::IfThenElseZero(hn::FirstN(d, part), e);
    sum = hn::Add(sum, e);
    StoreN(e, p + i, part);
  });
  const float total = Sum(sum);
  const V scale = hn::Set(d, 1.0f / total);
  Map(p, p, 0, n, [&](V e) TRIREME_INLINED { return hn::Mul(e, scale); });
  return most + std::log(total);
}

// -1, 0 or 1; what is not a number stays so.
HWY_INLINE V Sign(V x) {
  const V sign =
      hn::IfThenElseZero(hn::Ne(x, hn::Zero(Floats())), hn::CopySign(hn::Set(Floats(), 1.0f), x));
  return hn::IfThenElse(hn::IsNaN(x), x, sign);
}

// What the outputs of a sample should be: `value` at one place, 0 elsewhere.
struct Aim {
  size_t place;
  float value;
};
Aim AimOf(const Shard& shard, size_t sample, size_t classes) {
  const int32_t label = shard.batch->labels[sample];
  return classes == 1 ? Aim{0, NumberOfLabel(label)} : Aim{static_cast<size_t>(label), 1.0f};
}

// Of what comes behind the loss.
float GradientScale(const Shard& shard) {
  return shard.batch->loss_scale * shard.batch->ScaleOnHost();
}

// What the loss of a sample counts.
float WeightOf(const Shard& shard, size_t sample) {
  const std::span<const float> weights = shard.batch->class_weights;
  return weights.empty() ? 1.0f : weights[static_cast<size_t>(shard.batch->labels[sample])];
}

// Calls each(sample) for all of the shard's samples, which cost about `cost` multiply-adds each.
template <class F>
void ForSamples(const Shard& shard, size_t cost, const F& each) {
  ParallelFor(*shard.team, shard.count, 1 + GrainFor(cost), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) each(i);
  });
}

}  // namespace

// With smoothing s the target is (1 - s) onehot + s / classes, as in PyTorch.
void SoftmaxCrossEntropy(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* logits = call.inputs[0].floats();
  float *losses = call.outputs[0].floats(), *probabilities = call.outputs[1].floats();
  const float smoothing = call.attributes.smoothing;
  ForSamples(shard, 16 * classes, [&](size_t sample) {
    const float* x = logits + sample * classes;
    const float log_sum = Softmax(x, classes, probabilities + sample * classes);
    float target = (1 - smoothing) * x[shard.batch->labels[sample]];
    if (smoothing > 0) {
      double sum = 0;
      for (size_t c = 0; c < classes; ++c) sum += x[c];
      target += smoothing / static_cast<float>(classes) * static_cast<float>(sum);
    }
    losses[sample] = (log_sum - target) * WeightOf(shard, sample);
  });
}

void SoftmaxCrossEntropyGrad(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* probabilities = call.inputs[0].floats();
  float* dx = call.outputs[0].floats();
  const float smoothing = call.attributes.smoothing;
  const float rest = smoothing / static_cast<float>(classes);
  ForSamples(shard, 2 * classes, [&](size_t sample) HWY_ATTR {
    const float* p = probabilities + sample * classes;
    float* out = dx + sample * classes;
    const size_t label = static_cast<size_t>(shard.batch->labels[sample]);
    const float scale = GradientScale(shard) * WeightOf(shard, sample);
    const float of_label = (p[label] - (1 - smoothing) - rest) * scale;  // dx may be p
    const V factor = hn::Set(Floats(), scale), off = hn::Set(Floats(), rest);
    Map(p, out, 0, classes, [&](V v) TRIREME_INLINED { return hn::Mul(hn::Sub(v, off), factor); });
    out[label] = of_label;
  });
}

void SquaredError(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* outputs = call.inputs[0].floats();
  float* losses = call.outputs[0].floats();
  ForSamples(shard, 2 * classes, [&](size_t sample) {
    const float* y = outputs + sample * classes;
    const Aim aim = AimOf(shard, sample, classes);
    float sum = 0;
    for (size_t c = 0; c < classes; ++c) {
      const float off = y[c] - (c == aim.place ? aim.value : 0.0f);
      sum += off * off;
    }
    losses[sample] = 0.5f * sum * WeightOf(shard, sample);
  });
}

void SquaredErrorGrad(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* outputs = call.inputs[0].floats();
  float* dx = call.outputs[0].floats();
  ForSamples(shard, 2 * classes, [&](size_t sample) HWY_ATTR {
    const float* y = outputs + sample * classes;
    float* out = dx + sample * classes;
    const Aim aim = AimOf(shard, sample, classes);
    const float scale = GradientScale(shard) * WeightOf(shard, sample);
    const float of_label = (y[aim.place] - aim.value) * scale;  // dx may be y
    const V factor = hn::Set(Floats(), scale);
    Map(y, out, 0, classes, [&](V v) TRIREME_INLINED { return hn::Mul(v, factor); });
    out[aim.place] = of_label;
  });
}

void AbsoluteError(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* outputs = call.inputs[0].floats();
  float* losses = call.outputs[0].floats();
  ForSamples(shard, 2 * classes, [&](size_t sample) {
    const float* y = outputs + sample * classes;
    const Aim aim = AimOf(shard, sample, classes);
    float sum = 0;
    for (size_t c = 0; c < classes; ++c) {
      sum += std::abs(y[c] - (c == aim.place ? aim.value : 0.0f));
    }
    losses[sample] = sum * WeightOf(shard, sample);
  });
}

void AbsoluteErrorGrad(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* outputs = call.inputs[0].floats();
  float* dx = call.outputs[0].floats();
  ForSamples(shard, 2 * classes, [&](size_t sample) HWY_ATTR {
    const float* y = outputs + sample * classes;
    float* out = dx + sample * classes;
    const Aim aim = AimOf(shard, sample, classes);
    const float scale = GradientScale(shard) * WeightOf(shard, sample);
    const float off = y[aim.place] - aim.value;  // dx may be y
    const V factor = hn::Set(Floats(), scale);
    Map(y, out, 0, classes, [&](V v) TRIREME_INLINED { return hn::Mul(Sign(v), factor); });
    out[aim.place] = scale * (off > 0 ? 1 : off < 0 ? -1 : off);
  });
}

// A prediction is the first of the largest outputs.
void Tally(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float *logits = call.inputs[0].floats(), *losses = call.inputs[1].floats();
  double loss = 0;
  size_t correct = 0;
  for (size_t sample = 0; sample < shard.count; ++sample) {
    const float* x = logits + sample * classes;
    loss += losses[sample];
    if (classes == 1) continue;
    const size_t label = static_cast<size_t>(shard.batch->labels[sample]);
    bool wins = x[label] == LargestOf(x, classes);
    for (size_t c = 0; wins && c < label; ++c) wins = x[c] != x[label];
    correct += wins;
  }
  float* sum = shard.summand;
  const float scaled = shard.batch->loss_scale * static_cast<float>(loss);
  sum[call.loss] = (shard.accumulate ? sum[call.loss] : 0) + scaled;
  sum[call.correct] = (shard.accumulate ? sum[call.correct] : 0) + static_cast<float>(correct);
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
