#pragma once
#include <string>

#include "base/log.h"
#include "trainer/job.h"
#include "transport/world.h"

namespace trireme {

// Before the first step, where there are several ranks. Every rank calls these.

// Refuses a rank that would train something else: another recipe, other data, another program or
// instruction set where bits must be equal.
void CheckAgreement(Group& group, const Job& job);

// Rank 0 logs a table: rank, host, process, role, device, threads.
void ShowRanks(Group& group, const Job& job, const Log& log);

}  // namespace trireme
