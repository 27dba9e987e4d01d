#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/state_io.h"
#include "flat/arithmetic.h"
#include "flat/layout.h"
#include "optimizer/options.h"

namespace trireme {

// Guard, optimizer and running statistics over one summand: runs wherever the update runs (on a
// replica, on a server, on shared weights). Clips, skips an update that is not finite, spares
// biases and norms from weight decay. Not thread-safe.
class Updater {
 public:
  // Memory for the optimizer's own state is taken on `device`.
  Updater(const OptimizerOptions& options, const Schedule& schedule, const Layout& layout,
          Device& device);

  // Update number `step` of the run (the schedule depends on it). Only enqueues.
  void Apply(Queue& queue, int64_t step, Slice summand, Slice state);
  void Reset(Queue& queue);  // forgets momentum and averages

  // The optimizer's own slices by name ("velocity"), in the layout of the weights.
  struct Named {
    const char* name;
    Slice slice;
  };
  std::span<const Named> slices() const;
};

}  // namespace trireme
