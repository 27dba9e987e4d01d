#include <cmath>

#include "engine/ref/kernels.h"

namespace trireme::ref {

// All values of a channel, over the samples and places of the shard, are one population.

void BatchNorm(const Call& call) {
  const auto x = call.inputs[0].values, y = call.outputs[0].values;
  const auto mean = call.outputs[1].values, inv_std = call.outputs[2].values;
  const size_t C = mean.size();
  const double count = double(x.size() / C);
  if (x.empty()) return;

  std::vector<double> variance(C);
  for (size_t i = 0; i < x.size(); ++i) mean[i % C] += x[i] / count;
  for (size_t i = 0; i < x.size(); ++i) {
    variance[i % C] += (x[i] - mean[i % C]) * (x[i] - mean[i % C]) / count;
  }
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
  const auto x = call.inputs[0].values, mean = call.inputs[1].values;
  const auto inv_std = call.inputs[2].values, dy = call.inputs[3].values;
  const auto dx = call.outputs[0].values;
  const size_t C = mean.size();
  const double count = double(x.size() / C);

  std::vector<double> d_weight(C), d_bias(C);
  auto normal = [&](size_t i) { return (x[i] - mean[i % C]) * inv_std[i % C]; };
  for (size_t i = 0; i < x.size(); ++i) {
    d_weight[i % C] += dy[i] * normal(i);
    d_bias[i % C] += dy[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % C;
    dx[i] = call.weights[0][c] * inv_std[c] *
            (dy[i] - d_bias[c] / count - normal(i) * d_weight[c] / count);
  }
  for (size_t c = 0; c < C; ++c) {
    call.gradients[0][c] += d_weight[c];
    call.gradients[1][c] += d_bias[c];
  }
}

}  // namespace trireme::ref
