#include <cmath>
#include <initializer_list>
#include <vector>

#include "engine/ref/kernel.h"

namespace trireme::ref {

// All values of a channel, over the samples and places of the shard, or of all shards that are
// computed at the same time, are one population.
namespace {

// Sums over those shards, and with them how many values a channel has.
double SumOverShards(const Call& call, double count,
                     std::initializer_list<std::vector<double>*> lists) {
  if (!call.batch.sum_over_shards) return count;
  std::vector<double> all{count};
  for (const auto* list : lists) all.insert(all.end(), list->begin(), list->end());
  call.batch.sum_over_shards(all);
  size_t at = 1;
  for (auto* list : lists) {
    for (double& value : *list) value = all[at++];
  }
  return all[0];
}

// passes(c, normal): whether the gradient of a y is let through.
template <class Passes>
void Backward(const Call& call, const Passes& passes) {
  const auto x = call.inputs[0].values, mean = call.inputs[1].values;
  const auto inv_std = call.inputs[2].values;
  const auto dx = call.outputs[0].values;
  const size_t C = mean.size();
  std::vector<double> dy(call.inputs[3].values.begin(), call.inputs[3].values.end());
  std::vector<double> d_weight(C), d_bias(C);
  auto normal = [&](size_t i) { return (x[i] - mean[i % C]) * inv_std[i % C]; };
  for (size_t i = 0; i < x.size(); ++i) {
    if (!passes(i % C, normal(i))) dy[i] = 0;
    d_weight[i % C] += dy[i] * normal(i);
    d_bias[i % C] += dy[i];
  }
  for (size_t c = 0; c < C; ++c) {
    call.gradients[0][c] += d_weight[c];
    call.gradients[1][c] += d_bias[c];
  }
  const double count = SumOverShards(call, double(x.size() / C), {&d_weight, &d_bias});
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % C;
    dx[i] = call.weights[0][c] * inv_std[c] *
            (dy[i] - d_bias[c] / count - normal(i) * d_weight[c] / count);
  }
}

}  // namespace

void BatchNorm(const Call& call) {
  const auto x = call.inputs[0].values, y = call.outputs[0].values;
  const auto mean = call.outputs[1].values, inv_std = call.outputs[2].values;
  const size_t C = mean.size();
  if (x.empty()) return;

  std::vector<double> sum(C), variance(C);
  for (size_t i = 0; i < x.size(); ++i) sum[i % C] += x[i];
  const double count = SumOverShards(call, double(x.size() / C), {&sum});
  for (size_t c = 0; c < C; ++c) mean[c] = sum[c] / count;
  for (size_t i = 0; i < x.size(); ++i) {
    variance[i % C] += (x[i] - mean[i % C]) * (x[i] - mean[i % C]) / count;
  }
  SumOverShards(call, 0, {&variance});
  for (size_t c = 0; c < C; ++c) {
    inv_std[c] = 1 / std::sqrt(variance[c] + call.attributes.epsilon);
    const double unbiased = count > 1 ? variance[c] * count / (count - 1) : variance[c];
    call.seen[0][c] += call.batch.statistics_scale * mean[c];
    call.seen[1][c] += call.batch.statistics_scale * unbiased;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % C;
    y[i] = (x[i] - mean[c]) * inv_std[c] * call.weights[0][c] + call.weights[1][c];
  }
}

void BatchNormInference(const Call& call) {
  const auto x = call.inputs[0].values, y = call.outputs[0].values;
  const auto mean = call.running[0], variance = call.running[1];
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % mean.size();
    const double normal = (x[i] - mean[c]) / std::sqrt(variance[c] + call.attributes.epsilon);
    y[i] = normal * call.weights[0][c] + call.weights[1][c];
  }
}

void BatchNormGrad(const Call& call) {
  Backward(call, [](size_t, double) { return true; });
}

void BatchNormReluGrad(const Call& call) {
  Backward(call, [&](size_t c, double normal) {
    return normal * call.weights[0][c] + call.weights[1][c] > 0;
  });
}

}  // namespace trireme::ref
