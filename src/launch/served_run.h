#pragma once
#include "launch/transports.h"

namespace trireme {

// Starts servers and clients as processes that talk by links, and supervises them (see
// RunServerRanks).
int RunServers(const LocalRanks& ranks, const ServerNeeds& needs, FunctionRef<int(World&)> fn);

}  // namespace trireme
