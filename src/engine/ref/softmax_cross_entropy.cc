#include <algorithm>
#include <cmath>

#include "engine/ref/kernel.h"

namespace trireme::ref {

namespace {

double Target(const Call& call, const Call::Aim& aim, int64_t i, int64_t classes) {
  const double smoothing = call.attributes.smoothing;
  return (1 - smoothing) * call.Target(aim, i) + smoothing / double(classes);
}

}  // namespace

void SoftmaxCrossEntropy(const Call& call) {
  const int64_t classes = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    const double* x = call.inputs[0].sample(n);
    const double largest = *std::max_element(x, x + classes);
    double sum = 0;
    for (int64_t i = 0; i < classes; ++i) sum += std::exp(x[i] - largest);
    const double log_sum = largest + std::log(sum);
    for (int64_t i = 0; i < classes; ++i) {
      for (const Call::Aim& aim : call.Aims(n)) {
        call.outputs[0].values[n] += Target(call, aim, i, classes) * (log_sum - x[i]) * aim.counts;
      }
      call.outputs[1].sample(n)[i] = std::exp(x[i] - log_sum);
    }
  }
}

void SoftmaxCrossEntropyGrad(const Call& call) {
  const int64_t classes = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < classes; ++i) {
      for (const Call::Aim& aim : call.Aims(n)) {
        const double error = call.inputs[0].sample(n)[i] - Target(call, aim, i, classes);
        call.outputs[0].sample(n)[i] += error * call.GradientScale() * aim.counts;
      }
    }
  }
}

}  // namespace trireme::ref
