#include "base/random.h"
#include "engine/ref/kernel.h"

namespace trireme::ref {

// Forward and backward alike.
void StochasticDepth(const Call& call) {
  const Random random(HashKey(call.batch.random_key, call.attributes.layer));
  const double rate = call.attributes.rate;
  const int64_t size = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    const bool kept = random.Uniform(uint64_t(call.batch.first_position + n)) >= rate;
    for (int64_t i = 0; i < size; ++i) {
      call.outputs[0].sample(n)[i] = kept ? call.inputs[0].sample(n)[i] / (1 - rate) : 0;
    }
  }
}

}  // namespace trireme::ref
