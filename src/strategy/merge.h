#pragma once
#include <cstdint>
#include <span>

#include "strategy/strategy.h"

namespace trireme {

// What a worker and the centre do to each other. Called on the worker's thread; device work goes to
// the replica's queue.
class Merge {
 public:
  virtual ~Merge() = default;
  virtual void Begin(Replica& replica) = 0;  // takes the centre's weights
  virtual void Prepare() {}                  // the step that begins ends with a meeting
  // The work of `leases` is in the replica's weights and shall count at the centre.
  virtual void Meet(Replica& replica, std::span<const int64_t> leases) = 0;
  virtual void Reload(Replica& replica) = 0;  // takes the centre's weights, forgets momentum
};

}  // namespace trireme
