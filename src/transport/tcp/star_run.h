#pragma once
#include <vector>

#include "base/function_ref.h"
#include "base/log.h"
#include "transport/tcp/star.h"

namespace trireme {

// Ranks of a star that a launcher starts on its own machine as processes: `setup.tcp.rank` is the
// first of them.
struct StarRanks {
  StarSetup setup;
  int local = 1;
  std::vector<int> teams = {};  // by rank: which team it is of, -1 for none; empty: there are none
  FunctionRef<int()> signal = {};  // see Forked
  const Log* log = nullptr;
};

// Supervises them: one that is killed is started again, the server too, and with a rank all of its
// team; a client that throws is
// gone, and the run goes on while there are others; a server that throws ends all. Returns what the
// first of them returned.
int RunStar(const StarRanks& ranks, FunctionRef<int(World&)> fn);

}  // namespace trireme
