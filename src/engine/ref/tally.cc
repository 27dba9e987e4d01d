#include <algorithm>

#include "engine/ref/kernel.h"

namespace trireme::ref {

void Tally(const Call& call) {
  const int64_t classes = call.inputs[0].shape().size();
  for (int64_t n = 0; n < call.samples(); ++n) {
    const double* logits = call.inputs[0].sample(n);
    const auto first_largest = std::max_element(logits, logits + classes) - logits;
    call.metrics[0] += call.batch.loss_scale * call.inputs[1].values[n];
    if (classes > 1) call.metrics[1] += first_largest == call.batch.labels[n];
  }
  call.metrics[2] += call.batch.vote;  // an empty shard votes, too
}

}  // namespace trireme::ref
