#include <cmath>

#include "engine/ref/kernel.h"

namespace trireme::ref {

void AbsoluteError(const Call& call) {
  const int64_t classes = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < classes; ++i) {
      for (const Call::Aim& aim : call.Aims(n)) {
        const double error = call.inputs[0].sample(n)[i] - call.Target(aim, i);
        call.outputs[0].values[n] += std::abs(error) * aim.counts;
      }
    }
  }
}

void AbsoluteErrorGrad(const Call& call) {
  const int64_t classes = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < classes; ++i) {
      for (const Call::Aim& aim : call.Aims(n)) {
        const double error = call.inputs[0].sample(n)[i] - call.Target(aim, i);
        const double sign = error > 0 ? 1 : error < 0 ? -1 : error;  // not a number stays so
        call.outputs[0].sample(n)[i] += sign * call.GradientScale() * aim.counts;
      }
    }
  }
}

}  // namespace trireme::ref
