#pragma once
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "transport/world.h"

namespace trireme {

// What every transport must do: each case runs on all ranks of a world, which may be threads or
// processes, so a case shares nothing but messages.
struct ConformanceCase {
  const char* name;
  int ranks;
  void (*run)(World&);     // with EXPECT_...
  double timeout_s = 60;   // transport.timeout_s
  const char* error = "";  // what the job must fail with; empty: it must not
};

// Starts a world of `ranks` ranks, calls the function on each, throws the first error.
using StartRanks = FunctionRef<void(int ranks, double timeout_s, FunctionRef<void(World&)>)>;

std::span<const ConformanceCase> GroupCases();
std::span<const ConformanceCase> LinkCases();    // where a transport has links
std::vector<ConformanceCase> AllCases();         // both
std::span<const ConformanceCase> MemoryCases();  // where World::memory() is one

// Runs one case and judges it. A failed EXPECT in any rank, also of another process, fails here.
void CheckCase(const ConformanceCase& conformance_case, StartRanks start);

// For INSTANTIATE_TEST_SUITE_P.
inline std::string CaseName(const testing::TestParamInfo<ConformanceCase>& info) {
  return info.param.name;
}

}  // namespace trireme
