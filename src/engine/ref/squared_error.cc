#include "engine/ref/kernel.h"

namespace trireme::ref {

void SquaredError(const Call& call) {
  const int64_t classes = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < classes; ++i) {
      const double error = call.inputs[0].sample(n)[i] - (i == call.batch.labels[n] ? 1 : 0);
      call.outputs[0].values[n] += error * error / 2;
    }
  }
}

void SquaredErrorGrad(const Call& call) {
  const int64_t classes = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < classes; ++i) {
      const double error = call.inputs[0].sample(n)[i] - (i == call.batch.labels[n] ? 1 : 0);
      call.outputs[0].sample(n)[i] = error * call.batch.loss_scale;
    }
  }
}

}  // namespace trireme::ref
