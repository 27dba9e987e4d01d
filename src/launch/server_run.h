#pragma once
#include <vector>

#include "base/function_ref.h"
#include "base/log.h"
#include "transport/tcp/server_world.h"

namespace trireme {

// Servers and clients that a launcher starts on its own machine as processes: `setup.tcp.rank` is
// the first of them.
struct ServerRanks {
  ServerWorldSetup setup;  // where more servers listen is found out here
  int local = 1;
  int servers = 1;  // the first ranks, on whichever machine
  // By rank: which group it is of, -1 for none; empty: there are none.
  std::vector<int> groups = {};
  size_t group_bytes = 0;  // not 0: groups share memory, and a rank may allocate so much of it
  FunctionRef<int()> signal = {};  // see Forked
  const Log* log = nullptr;
  FunctionRef<void()> listens = {};  // in the first server's process, once it does
};

// Supervises them: one that is killed is started again, with a rank all of its group, and with a
// server all servers of this machine. A client that throws is gone with its group, as is one that
// is killed in many lives in a row before a step is done; the run goes on while there are others. A
// server of that kind ends all. Returns what the first of them returned. Of several servers those
// after the first listen at the ports after the first's, each on its own machine, or, where the
// first has brought a socket of loopback, at others of loopback.
int RunServerRanks(const ServerRanks& ranks, FunctionRef<int(World&)> fn);

}  // namespace trireme
