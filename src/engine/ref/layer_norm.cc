#include <cmath>

#include "engine/ref/kernel.h"

namespace trireme::ref {

// All values of a sample are one population.

void LayerNorm(const Call& call) {
  const int64_t size = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    const double* x = call.inputs[0].sample(n);
    double* y = call.outputs[0].sample(n);
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < size; ++i) mean += x[i] / double(size);
    for (int64_t i = 0; i < size; ++i) variance += (x[i] - mean) * (x[i] - mean) / double(size);
    const double inv_std = 1 / std::sqrt(variance + call.attributes.epsilon);
    call.outputs[1].values[n] = mean;
    call.outputs[2].values[n] = inv_std;
    for (int64_t i = 0; i < size; ++i) {
      y[i] = (x[i] - mean) * inv_std;
      if (call.attributes.affine) y[i] = y[i] * call.weights[0][i] + call.weights[1][i];
    }
  }
}

void LayerNormGrad(const Call& call) {
  const int64_t size = call.inputs[0].shape().size();
  const bool affine = call.attributes.affine;
  for (int64_t n = 0; n < call.samples(); ++n) {
    const double *x = call.inputs[0].sample(n), *dy = call.inputs[3].sample(n);
    double* dx = call.outputs[0].sample(n);
    const double mean = call.inputs[1].values[n], inv_std = call.inputs[2].values[n];
    auto normal = [&](int64_t i) { return (x[i] - mean) * inv_std; };
    auto d_normal = [&](int64_t i) { return affine ? dy[i] * call.weights[0][i] : dy[i]; };
    double sum = 0, product = 0;
    for (int64_t i = 0; i < size; ++i) {
      sum += d_normal(i);
      product += d_normal(i) * normal(i);
    }
    for (int64_t i = 0; i < size; ++i) {
      dx[i] = inv_std * (d_normal(i) - sum / double(size) - normal(i) * product / double(size));
      if (!affine) continue;
      call.gradients[0][i] += dy[i] * normal(i);
      call.gradients[1][i] += dy[i];
    }
  }
}

}  // namespace trireme::ref
