#pragma once
#include <cstddef>
#include <memory>

#include "base/function_ref.h"
#include "transport/options.h"
#include "transport/world.h"

namespace trireme {

// The ranks of a job, as this process sees them: it starts them (threads, processes of this
// machine), or is one of them already (another program started it).
class Crew {
 public:
  // `options` outlives it; its name and ranks are resolved.
  explicit Crew(const TransportOptions& options) : options_(options) {}

  struct Needs {
    size_t shared_bytes = 0;         // that a rank will allocate in Commons
    FunctionRef<int()> signal = {};  // see Forked
  };
  // Calls `fn` on every rank that is this process or started by it. Returns what the lowest of
  // them returned, 0 or 2 ... 255; throws the first error.
  int Run(const Needs& needs, FunctionRef<int(World&)> fn);

 private:
  const TransportOptions& options_;
};

}  // namespace trireme
