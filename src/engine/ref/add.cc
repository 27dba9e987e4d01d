#include "engine/ref/kernel.h"

namespace trireme::ref {

void Add(const Call& call) {
  const auto a = call.inputs[0].values, b = call.inputs[1].values, y = call.outputs[0].values;
  for (size_t i = 0; i < y.size(); ++i) y[i] = a[i] + b[i];
}

}  // namespace trireme::ref
