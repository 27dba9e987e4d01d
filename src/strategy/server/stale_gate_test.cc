#include "strategy/server/stale_gate.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace trireme {
namespace {

// Workers that begin, finish and die at random moments: every update is within the bound when it is
// applied, and whoever has finished gets its turn.
TEST(StaleGate, KeepsEveryUpdateWithinTheBoundAndNobodyWaitsForEver) {
  for (const int64_t bound : {0, 1, 2, 5, 20}) {
    std::mt19937 random(unsigned(bound) + 1);
    StaleGate gate(bound);
    std::vector<int64_t> computing, finished;
    int64_t now = 0, most = 0, refused = 0;
    for (int i = 0; i < 20'000; ++i) {
      const auto pick = [&](std::vector<int64_t>& from) {
        const size_t at = random() % from.size();
        const int64_t version = from[at];
        from.erase(from.begin() + long(at));
        return version;
      };
      const unsigned what = random() % 16;
      if (what < 8) {
        if (!gate.MayBegin()) {
          ++refused;
          EXPECT_EQ(gate.under_way(), bound + 1);
        } else {
          gate.Begin(now);
          computing.push_back(now);
        }
      } else if (what < 15 && !computing.empty()) {
        finished.push_back(pick(computing));
      } else if (!computing.empty()) {
        gate.End(pick(computing));  // dies
      }
      for (size_t f = 0; f < finished.size();) {
        const int64_t version = finished[f];
        if (!gate.MayApply(version, now)) {
          ++f;
          continue;
        }
        finished.erase(finished.begin() + long(f));
        most = std::max(most, now - version);
        ASSERT_LE(now - version, bound);
        gate.End(version);
        ++now;
        f = 0;
      }
      // If nobody computes any more, nobody waits.
      ASSERT_TRUE(!computing.empty() || finished.empty());
    }
    EXPECT_EQ(most, bound);  // it is used up
    EXPECT_GT(refused, 0);
    EXPECT_GT(now, 100);
  }
}

}  // namespace
}  // namespace trireme
