#pragma once
#include <cstddef>

#include "base/function_ref.h"
#include "transport/world.h"

namespace trireme {

struct ShmSetup {
  int ranks = 1;
  double timeout_s = 60;
  size_t bytes = 64 << 20;         // that each rank may allocate in SharedMemory
  FunctionRef<int()> signal = {};  // see Forked
};

// Starts the ranks as processes of this machine that share memory, and supervises them (see
// RunForked). Returns what rank 0 returned.
int RunShm(const ShmSetup& setup, FunctionRef<int(World&)> fn);

}  // namespace trireme
