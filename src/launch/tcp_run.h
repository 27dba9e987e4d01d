#pragma once
#include "base/function_ref.h"
#include "transport/tcp/world.h"

namespace trireme {

// Ranks that a launcher starts on its own machine: `setup.rank` is the first of them. On one
// machine alone `setup.listener` must be there before.
struct TcpRanks {
  TcpSetup setup;
  int local = 1;                   // ranks of this machine
  FunctionRef<int()> signal = {};  // see Forked
};

// Starts them as processes and supervises them (see RunForked). Returns what the first of them
// returned.
int RunTcp(const TcpRanks& ranks, FunctionRef<int(World&)> fn);

}  // namespace trireme
