#include "engine/ref/kernel.h"
#include "engine/ref/window.h"

namespace trireme::ref {

void MaxPool(const Call& call) {
  const Tensor &x = call.inputs[0], &y = call.outputs[0], &index = call.outputs[1];
  const int64_t C = x.shape().channels;
  for (int64_t n = 0; n < call.samples(); ++n) {
    std::vector<bool> begun(y.shape().size());
    ForEachWindow(call.attributes, x.shape(), y.shape(), [&](int64_t out, int64_t k, int64_t in) {
      for (int64_t c = 0; c < C; ++c) {
        const double value = x.sample(n)[in * C + c];
        double& largest = y.sample(n)[out * C + c];
        if (begun[out * C + c] && value <= largest) continue;  // the first maximum wins
        begun[out * C + c] = true;
        largest = value;
        index.sample(n)[out * C + c] = double(k);
      }
    });
  }
}

void MaxPoolGrad(const Call& call) {
  const Tensor &index = call.inputs[0], &dy = call.inputs[1], &dx = call.outputs[0];
  const int64_t C = dx.shape().channels;
  for (int64_t n = 0; n < call.samples(); ++n) {
    ForEachWindow(call.attributes, dx.shape(), dy.shape(), [&](int64_t out, int64_t k, int64_t in) {
      for (int64_t c = 0; c < C; ++c) {
        if (index.sample(n)[out * C + c] != double(k)) continue;
        dx.sample(n)[in * C + c] += dy.sample(n)[out * C + c];
      }
    });
  }
}

}  // namespace trireme::ref
