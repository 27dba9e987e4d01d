// Losses, their gradients and the tally of a shard. Each sample is one row of outputs.
#include <cmath>

#include "base/label.h"
#include "engine/cpu/logarithm.h"

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
  return most + Logarithm(total);
}

// -1, 0 or 1; what is not a number stays so.
HWY_INLINE V Sign(V x) {
  const V sign =
      hn::IfThenElseZero(hn::Ne(x, hn::Zero(Floats())), hn::CopySign(hn::Set(Floats(), 1.0f), x));
  return hn::IfThenElse(hn::IsNaN(x), x, sign);
}

// What the outputs of a sample should be: `value` at one place, 0 elsewhere. The loss against it
// counts the share of a mixed sample times the weight of the class.
struct Aim {
  size_t place;
  float value, counts;
};
struct Aims {
  Aim first, second;  // the second counts 0 unless the sample is mixed
};
Aims AimsOf(const Shard& shard, size_t sample, size_t classes) {
  const Batch& batch = *shard.batch;
  const int32_t label = batch.labels[sample];
  if (classes == 1) {
    const float number = NumberOfLabel(label);
    return {{0, number, 1}, {0, number, 0}};
  }
  const auto aim = [&](int32_t at, float share) {
    const size_t place = static_cast<size_t>(at);
    return Aim{place, 1, batch.class_weights.empty() ? share : share * batch.class_weights[place]};
  };
  if (batch.mixes.empty()) return {aim(label, 1), aim(label, 0)};
  const auto [other, share] = batch.mixes[sample];
  return {aim(label, 1 - share), aim(other, share)};
}

// Of what comes behind the loss.
float GradientScale(const Shard& shard) {
  return shard.batch->loss_scale * shard.batch->ScaleOnHost();
}

// Calls each(sample) for all of the shard's samples, which cost about `cost` multiply-adds each.
template <class F>
void ForSamples(const Shard& shard, size_t cost, const F& each) {
  ParallelFor(*shard.team, shard.count, 1 + GrainFor(cost), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) each(i);
  });
}

// The sum over both aims of against(aim).
template <class F>
float LossOf(const Aims& aims, const F& against) {
  const float loss = against(aims.first) * aims.first.counts;
  if (aims.second.counts == 0) return loss;
  return loss + against(aims.second) * aims.second.counts;
}

// Where an aim is 0, others(value) is the gradient of the loss against it; elsewhere
// at(value, aim's value) is. `to` may be `from`.
template <class Others, class At>
void WriteGradient(const float* from, float* to, size_t classes, const Aims& aims, float scale,
                   const Others& others, const At& at) {
  const float first = aims.first.counts * scale, second = aims.second.counts * scale;
  const auto sum = [&](size_t place) {
    const auto against = [&](const Aim& aim) {
      return at(from[place], place == aim.place ? aim.value : 0.0f);
    };
    return against(aims.first) * first + against(aims.second) * second;
  };
  const float of_first = sum(aims.first.place), of_second = sum(aims.second.place);
  const V factor = hn::Set(Floats(), first + second);
  Map(from, to, 0, classes, [&](V v) TRIREME_INLINED { return hn::Mul(others(v), factor); });
  to[aims.first.place] = of_first;
  to[aims.second.place] = of_second;
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
    double sum = 0;
    for (size_t c = 0; smoothing > 0 && c < classes; ++c) sum += x[c];
    const float rest = smoothing / static_cast<float>(classes) * static_cast<float>(sum);
    losses[sample] = LossOf(AimsOf(shard, sample, classes), [&](const Aim& aim) {
      return log_sum - ((1 - smoothing) * x[aim.place] + rest);
    });
  });
}

void SoftmaxCrossEntropyGrad(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* probabilities = call.inputs[0].floats();
  float* dx = call.outputs[0].floats();
  const float smoothing = call.attributes.smoothing;
  const float rest = smoothing / static_cast<float>(classes);
  ForSamples(shard, 2 * classes, [&](size_t sample) HWY_ATTR {
    const V off = hn::Set(Floats(), rest);
    WriteGradient(
        probabilities + sample * classes, dx + sample * classes, classes,
        AimsOf(shard, sample, classes), GradientScale(shard),
        [&](V v) TRIREME_INLINED { return hn::Sub(v, off); },
        [&](float p, float aim) { return p - (1 - smoothing) * aim - rest; });
  });
}

void SquaredError(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* outputs = call.inputs[0].floats();
  float* losses = call.outputs[0].floats();
  ForSamples(shard, 2 * classes, [&](size_t sample) {
    const float* y = outputs + sample * classes;
    losses[sample] = LossOf(AimsOf(shard, sample, classes), [&](const Aim& aim) {
      float sum = 0;
      for (size_t c = 0; c < classes; ++c) {
        const float off = y[c] - (c == aim.place ? aim.value : 0.0f);
        sum += off * off;
      }
      return 0.5f * sum;
    });
  });
}

void SquaredErrorGrad(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* outputs = call.inputs[0].floats();
  float* dx = call.outputs[0].floats();
  ForSamples(shard, 2 * classes, [&](size_t sample) HWY_ATTR {
    WriteGradient(
        outputs + sample * classes, dx + sample * classes, classes, AimsOf(shard, sample, classes),
        GradientScale(shard), [](V v) TRIREME_INLINED { return v; },
        [](float y, float aim) { return y - aim; });
  });
}

void AbsoluteError(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* outputs = call.inputs[0].floats();
  float* losses = call.outputs[0].floats();
  ForSamples(shard, 2 * classes, [&](size_t sample) {
    const float* y = outputs + sample * classes;
    losses[sample] = LossOf(AimsOf(shard, sample, classes), [&](const Aim& aim) {
      float sum = 0;
      for (size_t c = 0; c < classes; ++c) {
        sum += std::abs(y[c] - (c == aim.place ? aim.value : 0.0f));
      }
      return sum;
    });
  });
}

void AbsoluteErrorGrad(const Call& call, const Shard& shard) {
  const size_t classes = call.inputs[0].size();
  const float* outputs = call.inputs[0].floats();
  float* dx = call.outputs[0].floats();
  ForSamples(shard, 2 * classes, [&](size_t sample) HWY_ATTR {
    WriteGradient(
        outputs + sample * classes, dx + sample * classes, classes, AimsOf(shard, sample, classes),
        GradientScale(shard), [](V v) TRIREME_INLINED { return Sign(v); },
        [](float y, float aim) {
          const float off = y - aim;
          return off > 0 ? 1.0f : off < 0 ? -1.0f : off;
        });
  });
}

// A prediction is the first of the largest outputs. Of a mixed sample the class of the larger share
// is right.
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
