#pragma once
#include <string>

#include "trainer/job.h"

namespace trireme {

// What --dry-run prints: operations after fusion, what each pass decided, memory by what it is for,
// buckets, shards.
std::string PlanText(const Job& job);

// What computes, on what; the first line of a run. A server's machine may lack what its workers
// have.
std::string DeviceText(const Job& job);

}  // namespace trireme
