#include "engine/ref/kernel.h"
#include "engine/ref/window.h"

namespace trireme::ref {

void AveragePool(const Call& call) {
  const Tensor &x = call.inputs[0], &y = call.outputs[0];
  const int64_t C = x.shape().channels;
  const double area = double(call.attributes.kernel) * call.attributes.kernel;
  for (int64_t n = 0; n < call.samples(); ++n) {
    ForEachWindow(call.attributes, x.shape(), y.shape(), [&](int64_t out, int64_t, int64_t in) {
      for (int64_t c = 0; c < C; ++c) {
        y.sample(n)[out * C + c] += x.sample(n)[in * C + c] / area;
      }
    });
  }
}

void AveragePoolGrad(const Call& call) {
  const Tensor &dy = call.inputs[0], &dx = call.outputs[0];
  const int64_t C = dx.shape().channels;
  const double area = double(call.attributes.kernel) * call.attributes.kernel;
  for (int64_t n = 0; n < call.samples(); ++n) {
    ForEachWindow(call.attributes, dx.shape(), dy.shape(), [&](int64_t out, int64_t, int64_t in) {
      for (int64_t c = 0; c < C; ++c) {
        dx.sample(n)[in * C + c] += dy.sample(n)[out * C + c] / area;
      }
    });
  }
}

}  // namespace trireme::ref
