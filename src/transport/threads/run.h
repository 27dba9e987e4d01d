#pragma once
#include "base/function_ref.h"
#include "transport/world.h"

namespace trireme {

// Starts `ranks` threads, each with a world of its own, and returns when all have ended.
// A rank that throws ends the others: what they wait for throws PeerLost. The first error that is
// not the echo of another one is thrown here, with the rank added. A world of one runs `fn` on
// the calling thread.
void RunRanks(int ranks, double timeout_s, FunctionRef<void(World&)> fn);

}  // namespace trireme
