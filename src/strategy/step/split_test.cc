#include "strategy/step/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace trireme {
namespace {

double LastDone(std::span<const int> split, std::span<const double> seconds) {
  double last = 0;
  for (size_t w = 0; w < split.size(); ++w) last = std::max(last, split[w] * seconds[w]);
  return last;
}

TEST(Split, EqualPartsDifferByOneAtMost) {
  EXPECT_EQ(EqualSplit(12, 4), (std::vector<int>{3, 3, 3, 3}));
  EXPECT_EQ(EqualSplit(7, 3), (std::vector<int>{2, 2, 3}));
  EXPECT_EQ(EqualSplit(2, 3), (std::vector<int>{0, 1, 1}));
}

TEST(Split, ShardsGoByRate) {
  EXPECT_EQ(SplitByRate(12, std::vector{1.0, 3.0}), (std::vector<int>{9, 3}));
  EXPECT_EQ(SplitByRate(12, std::vector{3.0, 1.0}), (std::vector<int>{3, 9}));
  EXPECT_EQ(SplitByRate(12, std::vector{1.0, 1.0, 1.0}), (std::vector<int>{4, 4, 4}));
  EXPECT_EQ(SplitByRate(12, std::vector{1.0, 1.08}), (std::vector<int>{6, 6}));    // 7 take longer
  EXPECT_EQ(SplitByRate(12, std::vector{1.0, 100.0}), (std::vector<int>{11, 1}));  // one at least
  EXPECT_EQ(SplitByRate(3, std::vector{1.0, 2.0, 5.0}), (std::vector<int>{1, 1, 1}));
}

TEST(Split, NoOtherSplitIsDoneEarlier) {
  for (const auto& seconds : {std::vector{1.0, 1.7, 3.1}, std::vector{2.0, 2.1, 0.3}}) {
    for (int shards = 3; shards < 30; ++shards) {
      const std::vector<int> split = SplitByRate(shards, seconds);
      EXPECT_EQ(std::accumulate(split.begin(), split.end(), 0), shards);
      for (int a = 1; a < shards - 1; ++a) {
        for (int b = 1; a + b < shards; ++b) {
          EXPECT_LE(LastDone(split, seconds), LastDone(std::vector{a, b, shards - a - b}, seconds));
        }
      }
    }
  }
}

}  // namespace
}  // namespace trireme
