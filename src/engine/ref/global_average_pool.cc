#include "engine/ref/kernel.h"

namespace trireme::ref {

void GlobalAveragePool(const Call& call) {
  const int64_t size = call.inputs[0].shape().size(), C = call.inputs[0].shape().channels;
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < size; ++i) {
      call.outputs[0].sample(n)[i % C] += call.inputs[0].sample(n)[i] * double(C) / double(size);
    }
  }
}

void GlobalAveragePoolGrad(const Call& call) {
  const int64_t size = call.outputs[0].shape().size(), C = call.outputs[0].shape().channels;
  for (int64_t n = 0; n < call.samples(); ++n) {
    for (int64_t i = 0; i < size; ++i) {
      call.outputs[0].sample(n)[i] = call.inputs[0].sample(n)[i % C] * double(C) / double(size);
    }
  }
}

}  // namespace trireme::ref
