#include "engine/ref/kernel.h"

namespace trireme::ref {

// I inputs, O outputs; weight [I][O]. All tokens of a sample are rows.

namespace {

int64_t Rows(const Call& call) {
  const Shape& x = call.inputs[0].shape();
  return call.samples() * x.height * x.width;
}

}  // namespace

void Dense(const Call& call) {
  const int64_t I = call.inputs[0].shape().channels, O = call.outputs[0].shape().channels;
  const double* weight = call.weights[0].data();
  for (int64_t n = 0; n < Rows(call); ++n) {
    const double* x = call.inputs[0].values.data() + n * I;
    double* y = call.outputs[0].values.data() + n * O;
    for (int64_t o = 0; o < O; ++o) y[o] = call.attributes.bias ? call.weights[1][o] : 0;
    for (int64_t i = 0; i < I; ++i) {
      for (int64_t o = 0; o < O; ++o) y[o] += x[i] * weight[i * O + o];
    }
  }
}

void DenseGradWeights(const Call& call) {
  const int64_t I = call.inputs[0].shape().channels, O = call.inputs[1].shape().channels;
  double* gradient = call.gradients[0].data();
  for (int64_t n = 0; n < Rows(call); ++n) {
    const double* x = call.inputs[0].values.data() + n * I;
    const double* dy = call.inputs[1].values.data() + n * O;
    for (int64_t i = 0; i < I; ++i) {
      for (int64_t o = 0; o < O; ++o) gradient[i * O + o] += x[i] * dy[o];
    }
    for (int64_t o = 0; call.attributes.bias && o < O; ++o) call.gradients[1][o] += dy[o];
  }
}

void DenseGradInput(const Call& call) {
  const int64_t I = call.outputs[0].shape().channels, O = call.inputs[0].shape().channels;
  const double* weight = call.weights[0].data();
  for (int64_t n = 0; n < Rows(call); ++n) {
    const double* dy = call.inputs[0].values.data() + n * O;
    double* dx = call.outputs[0].values.data() + n * I;
    for (int64_t i = 0; i < I; ++i) {
      dx[i] = 0;
      for (int64_t o = 0; o < O; ++o) dx[i] += dy[o] * weight[i * O + o];
    }
  }
}

}  // namespace trireme::ref
