#pragma once
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/log.h"
#include "trainer/job.h"
#include "transport/world.h"

namespace trireme {

// Before the first step, where there are several ranks. Every rank calls these.

// Refuses a rank that would train something else: another recipe, other data, another program or
// instruction set where bits must be equal.
void CheckAgreement(Group& group, const Job& job);

// The builds of all ranks (BuildText): the words against the first that is not rank 0's, if any.
std::string OtherBuild(const std::vector<std::string>& builds);

// Rank 0 logs a table: rank, host, process, role, device, threads.
void ShowRanks(Group& group, const Job& job, const Log& log);

// For ranks that have no group: what a client shows at the server's door, and the server's words
// against it, if any. `other_data`: clients may have samples of their own.
std::string FingerprintOf(const Job& job);
std::string JudgeFingerprint(const std::string& own, const std::string& shown, bool other_data);

// What a client that is no rank must know before it can make its fingerprint: the server's plan and
// recipe.
std::string RunInfoOf(const Job& job);
struct RunInfo {
  Plan plan;
  std::string recipe;  // TOML
};
RunInfo ReadRunInfo(const std::string& text);  // throws Error

// The client's job: the server's recipe and plan, this machine's threads, and what `own` sets.
Job PrepareClient(const RunInfo& run_info, FunctionRef<void(Sections&)> own);

}  // namespace trireme
