#include "engine/ref/kernel.h"

namespace trireme::ref {

void Relu(const Call& call) {
  const auto x = call.inputs[0].values, y = call.outputs[0].values;
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] > 0 ? x[i] : 0;
}

void ReluGrad(const Call& call) {
  const auto y = call.inputs[0].values, dy = call.inputs[1].values, dx = call.outputs[0].values;
  for (size_t i = 0; i < dx.size(); ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
}

}  // namespace trireme::ref
