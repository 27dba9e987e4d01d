#include "transport/broadcast.h"

#include <gtest/gtest.h>

#include <atomic>

#include "transport/threads/run.h"

namespace trireme {
namespace {

class Collectives : public testing::TestWithParam<int> {};

TEST_P(Collectives, NobodyPassesABarrierBeforeAllHaveCome) {
  std::atomic<int> came = 0;
  RunRanks(GetParam(), 10, [&](World& world) {
    for (int round = 1; round <= 20; ++round) {
      ++came;
      Barrier(world.group(), 0);
      EXPECT_GE(came, round * world.size());
      Barrier(world.group(), 0);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives, testing::Values(1, 2, 3, 4, 5, 8));

}  // namespace
}  // namespace trireme
