#include "flat/queue.h"

#include "base/assert.h"

namespace trireme {

void Event::Wait() const {
  TRIREME_ASSERT(recorded_);
  if (state_) state_->Wait();
}

}  // namespace trireme
