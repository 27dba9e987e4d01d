#include "health/straggler.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace trireme {
namespace {

// In step: whoever has less to do waits for who has most.
std::vector<RankShare> InStep(std::vector<RankShare> ranks, double communication, double& seconds) {
  double most = 0;
  for (const RankShare& r : ranks) most = std::max(most, r.data + r.compute);
  for (RankShare& r : ranks) r.waited = most + communication - r.data - r.compute;
  seconds = most + communication;
  return ranks;
}

std::optional<Straggler> Find(const std::vector<RankShare>& work, double communication = 0.5) {
  double seconds = 0;
  const auto ranks = InStep(work, communication, seconds);
  return FindStraggler(ranks, seconds);
}

TEST(Straggler, NamesTheSlowRankAndTheReason) {
  const auto compute = Find({{1, 10}, {1, 10}, {1, 20}, {1, 11}});
  ASSERT_TRUE(compute);
  EXPECT_EQ(compute->rank, 2);
  EXPECT_EQ(compute->cause, Cause::kCompute);
  EXPECT_NEAR(compute->share, 9 / 21.5, 1e-9);
  EXPECT_EQ(compute->Text(),
            "rank 2 is a straggler: the other ranks wait 42 % of each step for its compute");
  const auto data = Find({{8, 10}, {1, 10}});
  ASSERT_TRUE(data);
  EXPECT_EQ(data->rank, 0);
  EXPECT_EQ(data->cause, Cause::kData);
}

TEST(Straggler, NobodyIsLateWhereTwoAreEquallySlow) {
  EXPECT_FALSE(Find({{1, 10}, {1, 20}, {1, 20}}));
  EXPECT_FALSE(Find({{1, 10}, {1, 10}}));
  EXPECT_FALSE(Find({{1, 10}}));
  EXPECT_FALSE(FindStraggler({}, 1));
  EXPECT_FALSE(Find({{0, 0}, {0, 0}}, 0));
}

TEST(Straggler, AChainsEndThatHearsTheResultEarlierIsNotLate) {
  const std::vector<RankShare> ranks = {{1, 10, 8}, {1, 10, 4}};
  EXPECT_FALSE(FindStraggler(ranks, 20));
}

TEST(Straggler, ARankThatIsNotHeardHasABadLink) {
  const std::vector<RankShare> ranks = {{1, 10, 8}, {1, 10, 8, 6}, {1, 10, 8, 0.1}};
  const auto late = FindStraggler(ranks, 20);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->rank, 1);
  EXPECT_EQ(late->cause, Cause::kLink);
}

TEST(Straggler, OnceIsAnAccidentOftenIsNot) {
  double seconds = 0;
  const auto slow = InStep({{0, 2}, {0, 3}}, 0, seconds);
  const auto fine = InStep({{0, 3}, {0, 3}}, 0, seconds);
  StragglerWatch watch;
  for (int i = 1; i < StragglerWatch::kStretches; ++i) EXPECT_FALSE(watch.Add(slow, seconds));
  EXPECT_TRUE(watch.Add(slow, seconds));
  EXPECT_FALSE(watch.Add(fine, seconds));
  for (int i = 1; i < StragglerWatch::kStretches; ++i) EXPECT_FALSE(watch.Add(slow, seconds));
  const auto other = InStep({{0, 3}, {0, 2}}, 0, seconds);
  EXPECT_FALSE(watch.Add(other, seconds));
  EXPECT_FALSE(watch.Add(slow, seconds));
}

TEST(Straggler, MillisecondsNeedManyEpochsAndALongEpochIsEnoughAlone) {
  double seconds = 0;
  StragglerWatch few;
  const auto tiny = InStep({{0, 0.1}, {0, 0.2}}, 0, seconds);
  int epochs = 1;
  while (!few.Add(tiny, seconds)) ++epochs;
  EXPECT_NEAR(epochs, 10, 1);
  StragglerWatch one;
  const auto large = InStep({{0, 20}, {0, 30}}, 0, seconds);
  EXPECT_TRUE(one.Add(large, seconds));
}

// Every rank's time varies by 10 % from epoch to epoch: no alarm in 20 runs of 50 epochs.
TEST(Straggler, NoiseRaisesNoAlarm) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(1, 0.1);
  int alarms = 0;
  for (int run = 0; run < 20; ++run) {
    StragglerWatch watch;
    for (int epoch = 0; epoch < 50; ++epoch) {
      std::vector<RankShare> work(2 + run % 3);
      for (RankShare& r : work) r = {0.1 * noise(random), 3 * noise(random)};
      double seconds = 0;
      const auto ranks = InStep(work, 0.3, seconds);
      alarms += watch.Add(ranks, seconds).has_value();
    }
  }
  EXPECT_EQ(alarms, 0);
}

}  // namespace
}  // namespace trireme
