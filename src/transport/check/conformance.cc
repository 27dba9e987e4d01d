#include "transport/check/conformance.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace trireme {

std::vector<ConformanceCase> AllCases() {
  std::vector<ConformanceCase> all(GroupCases().begin(), GroupCases().end());
  all.insert(all.end(), LinkCases().begin(), LinkCases().end());
  return all;
}

void CheckCase(const ConformanceCase& wanted, StartRanks start) {
  std::string error;
  try {
    start(wanted.ranks, wanted.timeout_s, [&](World& world) {
      ASSERT_EQ(world.size(), wanted.ranks);
      wanted.run(world);
      // Of another process only what it throws arrives here.
      if (testing::Test::HasFailure()) throw Error("rank {} found a fault", world.rank());
    });
  } catch (const Error& e) {
    error = e.what();
  }
  if (wanted.error[0] == '\0') {
    EXPECT_EQ(error, "");
  } else {
    EXPECT_NE(error.find(wanted.error), std::string::npos)
        << "wanted: " << wanted.error << "\ngot: " << error;
  }
}

}  // namespace trireme
