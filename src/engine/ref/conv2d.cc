#include "engine/ref/kernel.h"
#include "engine/ref/window.h"

namespace trireme::ref {

// I input channels, O output channels; weight [place in the window][I][O]

void Conv2d(const Call& call) {
  const Tensor &x = call.inputs[0], &y = call.outputs[0];
  const int64_t I = x.shape().channels, O = y.shape().channels;
  for (int64_t n = 0; n < call.samples(); ++n) {
    if (call.attributes.bias) {
      for (int64_t i = 0; i < y.shape().size(); ++i) y.sample(n)[i] = call.weights[1][i % O];
    }
    ForEachWindow(call.attributes, x.shape(), y.shape(), [&](int64_t out, int64_t k, int64_t in) {
      const double *weight = &call.weights[0][k * I * O], *from = x.sample(n) + in * I;
      double* to = y.sample(n) + out * O;
      for (int64_t i = 0; i < I; ++i) {
        for (int64_t o = 0; o < O; ++o) to[o] += from[i] * weight[i * O + o];
      }
    });
  }
}

void Conv2dGradWeights(const Call& call) {
  const Tensor &x = call.inputs[0], &dy = call.inputs[1];
  const int64_t I = x.shape().channels, O = dy.shape().channels;
  for (int64_t n = 0; n < call.samples(); ++n) {
    ForEachWindow(call.attributes, x.shape(), dy.shape(), [&](int64_t out, int64_t k, int64_t in) {
      const double *from = x.sample(n) + in * I, *grad = dy.sample(n) + out * O;
      double* weight = &call.gradients[0][k * I * O];
      for (int64_t i = 0; i < I; ++i) {
        for (int64_t o = 0; o < O; ++o) weight[i * O + o] += from[i] * grad[o];
      }
    });
    if (!call.attributes.bias) continue;
    for (int64_t i = 0; i < dy.shape().size(); ++i) call.gradients[1][i % O] += dy.sample(n)[i];
  }
}

void Conv2dGradInput(const Call& call) {
  const Tensor &dy = call.inputs[0], &dx = call.outputs[0];
  const int64_t I = dx.shape().channels, O = dy.shape().channels;
  for (int64_t n = 0; n < call.samples(); ++n) {
    ForEachWindow(call.attributes, dx.shape(), dy.shape(), [&](int64_t out, int64_t k, int64_t in) {
      const double *weight = &call.weights[0][k * I * O], *grad = dy.sample(n) + out * O;
      double* to = dx.sample(n) + in * I;
      for (int64_t i = 0; i < I; ++i) {
        for (int64_t o = 0; o < O; ++o) to[i] += grad[o] * weight[i * O + o];
      }
    });
  }
}

}  // namespace trireme::ref
