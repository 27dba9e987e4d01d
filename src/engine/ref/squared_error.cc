#include "engine/ref/kernel.h"

namespace trireme::ref {

void SquaredError(const Call& call) {
  const int64_t classes = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < classes; ++i) {
      for (const Call::Aim& aim : call.Aims(n)) {
        const double error = call.inputs[0].sample(n)[i] - call.Target(aim, i);
        call.outputs[0].values[n] += error * error / 2 * aim.counts;
      }
    }
  }
}

void SquaredErrorGrad(const Call& call) {
  const int64_t classes = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < classes; ++i) {
      for (const Call::Aim& aim : call.Aims(n)) {
        const double error = call.inputs[0].sample(n)[i] - call.Target(aim, i);
        call.outputs[0].sample(n)[i] += error * call.GradientScale() * aim.counts;
      }
    }
  }
}

}  // namespace trireme::ref
