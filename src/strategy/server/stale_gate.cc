#include "strategy/server/stale_gate.h"

#include "base/assert.h"

namespace trireme {

bool StaleGate::MayApply(int64_t version, int64_t now) const {
  bool left_out = false;  // this one
  int64_t at = now + 1;   // the centre's version when the next of the others is applied
  for (const int64_t from : under_way_) {
    if (from == version && !left_out) {
      left_out = true;
    } else if (at++ - from > bound_) {
      return false;
    }
  }
  return true;
}

void StaleGate::End(int64_t version) {
  const auto found = under_way_.find(version);
  TRIREME_ASSERT(found != under_way_.end());
  under_way_.erase(found);
}

}  // namespace trireme
