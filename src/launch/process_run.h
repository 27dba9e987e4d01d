#pragma once
#include "launch/transports.h"

namespace trireme {

// Starts the local ranks as processes that join each other as those of a launcher do (kind.join),
// and supervises them (see RunForked). Returns what the first of them returned.
int RunProcesses(const TransportKind& kind, const LocalRanks& ranks, const PeerNeeds& needs,
                 FunctionRef<int(World&)> fn);

}  // namespace trireme
