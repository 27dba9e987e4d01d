#include "transport/all_reduce.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

// Whole numbers: sums are exact in any order.
std::vector<float> ValuesOf(int rank, size_t n) {
  std::vector<float> v(n);
  const Random random(rank);
  for (size_t i = 0; i < n; ++i) v[i] = float(random.Bits(i) % 1000);
  return v;
}

class AllReduceTest : public testing::TestWithParam<int> {};

TEST_P(AllReduceTest, SumsAnyLength) {
  const int ranks = GetParam();
  for (size_t n : {size_t(0), size_t(1), size_t(2), size_t(7), size_t(1000), size_t(300'007)}) {
    std::vector<float> expected(n);
    for (int r = 0; r < ranks; ++r) {
      const auto v = ValuesOf(r, n);
      for (size_t i = 0; i < n; ++i) expected[i] += v[i];
    }
    RunRanks(ranks, 10, [&](World& world) {
      std::vector<float> scratch(kRingScratch);
      auto v = ValuesOf(world.rank(), n);
      AllReduceSum(world.group(), 0, v, scratch);
      EXPECT_EQ(v, expected) << n;
    });
  }
}

TEST_P(AllReduceTest, SendsNoMoreThanARingNeeds) {
  RunRanks(GetParam(), 10, [](World& world) {
    const size_t n = 840'000, ranks = world.size();  // divisible by 1 ... 8
    std::vector<float> v(n, 1.0f), scratch(kRingScratch);
    AllReduceSum(world.group(), 0, v, scratch);
    EXPECT_EQ(world.group().volume().sent, 2 * (ranks - 1) * n / ranks * sizeof(float));
  });
}

TEST_P(AllReduceTest, SumsDoubles) {
  RunRanks(GetParam(), 10, [](World& world) {
    std::vector<double> v{1e-9 + world.rank(), 3, -1};
    AllReduceSum(world.group(), 0, v);
    const double n = world.size();
    EXPECT_NEAR(v[0], n * 1e-9 + n * (n - 1) / 2, 1e-12);
    EXPECT_EQ(v[1], 3 * n);
    EXPECT_EQ(v[2], -n);
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, AllReduceTest, testing::Values(1, 2, 3, 4, 5, 8));

}  // namespace
}  // namespace trireme
