#include <cmath>
#include <numbers>

#include "engine/ref/kernel.h"

namespace trireme::ref {
namespace {

// The share of a normal distribution below x.
double Below(double x) { return (1 + std::erf(x / std::numbers::sqrt2)) / 2; }

}  // namespace

void Gelu(const Call& call) {
  const auto x = call.inputs[0].values, y = call.outputs[0].values;
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] * Below(x[i]);
}

void GeluGrad(const Call& call) {
  const auto x = call.inputs[0].values, dy = call.inputs[1].values, dx = call.outputs[0].values;
  for (size_t i = 0; i < dx.size(); ++i) {
    const double density =
        std::exp(-x[i] * x[i] / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    dx[i] = dy[i] * (Below(x[i]) + x[i] * density);
  }
}

}  // namespace trireme::ref
