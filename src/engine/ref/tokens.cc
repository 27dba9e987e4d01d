#include <algorithm>

#include "engine/ref/kernel.h"

namespace trireme::ref {

// C channels of a token, or values that samples have in common.

void ClassToken(const Call& call) {
  const int64_t C = call.inputs[0].shape().channels, size = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    double* y = call.outputs[0].sample(n);
    std::ranges::copy(call.weights[0], y);
    std::copy_n(call.inputs[0].sample(n), size, y + C);
  }
}

void ClassTokenGrad(const Call& call) {
  const int64_t C = call.inputs[0].shape().channels, size = call.outputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    const double* dy = call.inputs[0].sample(n);
    for (int64_t c = 0; c < C; ++c) call.gradients[0][c] += dy[c];
    std::copy_n(dy + C, size, call.outputs[0].sample(n));
  }
}

void PositionEmbedding(const Call& call) {
  const int64_t size = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < size; ++i) {
      call.outputs[0].sample(n)[i] = call.inputs[0].sample(n)[i] + call.weights[0][i];
    }
  }
}

void PositionEmbeddingGrad(const Call& call) {
  const int64_t size = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < size; ++i) call.gradients[0][i] += call.inputs[0].sample(n)[i];
  }
}

void FirstToken(const Call& call) {
  const int64_t C = call.inputs[0].shape().channels;
  for (int64_t n = 0; n < call.samples(); ++n) {
    std::copy_n(call.inputs[0].sample(n), C, call.outputs[0].sample(n));
  }
}

// What is not copied begins as zeros.
void FirstTokenGrad(const Call& call) {
  const int64_t C = call.inputs[0].shape().channels;
  for (int64_t n = 0; n < call.samples(); ++n) {
    std::copy_n(call.inputs[0].sample(n), C, call.outputs[0].sample(n));
  }
}

}  // namespace trireme::ref
