#include <cmath>

#include "engine/ref/kernel.h"

namespace trireme::ref {

void Tanh(const Call& call) {
  const auto x = call.inputs[0].values, y = call.outputs[0].values;
  for (size_t i = 0; i < y.size(); ++i) y[i] = std::tanh(x[i]);
}

void TanhGrad(const Call& call) {
  const auto y = call.inputs[0].values, dy = call.inputs[1].values, dx = call.outputs[0].values;
  for (size_t i = 0; i < dx.size(); ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

}  // namespace trireme::ref
