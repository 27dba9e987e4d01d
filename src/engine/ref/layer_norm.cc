#include <cmath>

#include "engine/ref/kernel.h"

namespace trireme::ref {

// All values of a sample are one population, or the channels of each token.

namespace {

struct Populations {
  int64_t count, size;
  explicit Populations(const Call& call) {
    const Shape& x = call.inputs[0].shape();
    size = call.attributes.tokens ? x.channels : x.size();
    count = call.samples() * x.size() / size;
  }
};

}  // namespace

void LayerNorm(const Call& call) {
  const auto [count, size] = Populations(call);
  for (int64_t n = 0; n < count; ++n) {
    const double* x = call.inputs[0].values.data() + n * size;
    double* y = call.outputs[0].values.data() + n * size;
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
  const auto [count, size] = Populations(call);
  const bool affine = call.attributes.affine;
  for (int64_t n = 0; n < count; ++n) {
    const double *x = call.inputs[0].values.data() + n * size,
                 *dy = call.inputs[3].values.data() + n * size;
    double* dx = call.outputs[0].values.data() + n * size;
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
