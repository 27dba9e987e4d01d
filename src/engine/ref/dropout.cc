#include "base/random.h"
#include "engine/ref/kernel.h"

namespace trireme::ref {

// Forward and backward alike: the mask is a function of the sample's position.
void Dropout(const Call& call) {
  const Random random(HashKey(call.batch.random_key, call.attributes.layer));
  const double rate = call.attributes.rate;
  const int64_t size = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    const int64_t position = call.batch.first_position + n;
    for (int64_t i = 0; i < size; ++i) {
      const bool kept = random.Uniform(uint64_t(position * size + i)) >= rate;
      call.outputs[0].sample(n)[i] = kept ? call.inputs[0].sample(n)[i] / (1 - rate) : 0;
    }
  }
}

}  // namespace trireme::ref
