#include "optimizer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace trireme {
namespace {

constexpr int64_t kPerEpoch = 10, kTotal = 100, kBatch = 512;

Schedule Make(const OptimizerOptions& options) { return {options, kPerEpoch, kTotal, kBatch}; }

TEST(Schedule, ConstantStaysAndScalesWithTheBatch) {
  OptimizerOptions o = {.lr = 0.1};
  for (int64_t step : {0, 1, 99, 1000}) EXPECT_EQ(Make(o).rate(step), 0.1);
  o.scale_lr = true;
  EXPECT_DOUBLE_EQ(Make(o).rate(0), 0.2);
  o.scale_batch = 128;
  EXPECT_DOUBLE_EQ(Make(o).rate(0), 0.4);
}

TEST(Schedule, StepFallsAtTheFirstStepOfAnEpoch) {
  OptimizerOptions o = {.lr = 1, .schedule = "step"};
  o.decay_epochs = {6, 3, 7.5};  // in any order, between epochs too
  const Schedule at = Make(o);
  EXPECT_EQ(at.rate(0), 1);
  EXPECT_EQ(at.rate(29), 1);
  EXPECT_DOUBLE_EQ(at.rate(30), 0.1);
  EXPECT_DOUBLE_EQ(at.rate(59), 0.1);
  EXPECT_DOUBLE_EQ(at.rate(60), 0.01);
  EXPECT_DOUBLE_EQ(at.rate(74), 0.01);
  EXPECT_DOUBLE_EQ(at.rate(75), 0.001);

  o.decay_epochs.clear();
  o.decay_every = 2;
  o.decay_factor = 0.5;
  const Schedule every = Make(o);
  for (int64_t step : {0, 19, 20, 39, 40, 99}) {
    EXPECT_DOUBLE_EQ(every.rate(step), std::pow(0.5, double(step / 20))) << step;
  }
}

TEST(Schedule, CosineGoesFromTheRateToTheLeast) {
  const Schedule s = Make({.lr = 1, .schedule = "cosine", .lr_min = 0.2});
  EXPECT_EQ(s.rate(0), 1);
  EXPECT_DOUBLE_EQ(s.rate(50), 0.6);
  EXPECT_DOUBLE_EQ(s.rate(25), 0.2 + 0.8 * 0.5 * (1 + std::sqrt(0.5)));
  EXPECT_EQ(s.rate(100), 0.2);
  EXPECT_EQ(s.rate(500), 0.2);
  for (int64_t i = 1; i <= kTotal; ++i) EXPECT_LT(s.rate(i), s.rate(i - 1));
}

TEST(Schedule, WarmUpIsLinearAndThenTheScheduleBegins) {
  const Schedule s = Make({.lr = 1, .schedule = "cosine", .warmup_epochs = 0.5});
  EXPECT_DOUBLE_EQ(s.rate(0), 0.2);
  EXPECT_DOUBLE_EQ(s.rate(1), 0.4);
  EXPECT_EQ(s.rate(4), 1);
  EXPECT_EQ(s.rate(5), 1);
  EXPECT_LT(s.rate(6), 1);
  EXPECT_EQ(s.rate(100), 0);
  // Longer than the run: no division by nothing.
  const Schedule longer = Make({.lr = 1, .schedule = "cosine", .warmup_epochs = 20});
  EXPECT_DOUBLE_EQ(longer.rate(99), 0.5);
}

TEST(Schedule, OneCycleRisesAndFalls) {
  const Schedule s = Make({.lr = 1, .schedule = "one-cycle", .lr_min = 0.001});
  EXPECT_NEAR(s.rate(0), 0.04, 1e-12);
  EXPECT_DOUBLE_EQ(s.rate(kTotal - 1), 0.001);
  EXPECT_EQ(s.rate(kTotal + 5), s.rate(kTotal - 1));
  for (int64_t i = 1; i < kTotal; ++i) {
    EXPECT_EQ(s.rate(i) > s.rate(i - 1), i < 31) << i;  // the top is at 29.7
    EXPECT_LE(s.rate(i), 1);
  }
  // The warm-up says how long the rate rises.
  const Schedule given = Make({.lr = 1, .schedule = "one-cycle", .warmup_epochs = 2});
  EXPECT_DOUBLE_EQ(given.rate(10), 0.52);
  EXPECT_DOUBLE_EQ(given.rate(20), 1);
  EXPECT_NEAR(given.rate(kTotal - 1), 0, 1e-15);
  // A run of one step, and a rise that is longer than the run.
  EXPECT_GT(Schedule({.lr = 1, .schedule = "one-cycle"}, 1, 1, 8).rate(0), 0);
  EXPECT_DOUBLE_EQ(Make({.lr = 1, .schedule = "one-cycle", .warmup_epochs = 99}).rate(99), 1);
}

TEST(Schedule, RisingGrowsByTheSameFactorInEveryStep) {
  const Schedule s = Make({.lr = 10, .schedule = "rising", .lr_min = 0.001});
  EXPECT_DOUBLE_EQ(s.rate(0), 0.001);
  EXPECT_DOUBLE_EQ(s.rate(kTotal - 1), 10);
  EXPECT_EQ(s.rate(kTotal + 5), 10);
  const double factor = s.rate(1) / s.rate(0);
  EXPECT_NEAR(std::pow(factor, double(kTotal - 1)), 10 / 0.001, 1e-6);
  for (int64_t i = 1; i < kTotal; ++i) EXPECT_NEAR(s.rate(i) / s.rate(i - 1), factor, 1e-9);
}

TEST(Schedule, APlateauFallsWhereItIsTold) {
  const Schedule s = Make({.lr = 1,
                           .schedule = "plateau",
                           .decay_factor = 0.5,
                           .decay_patience = 3,
                           .lr_min = 0.2,
                           .warmup_epochs = 0.5});
  EXPECT_DOUBLE_EQ(s.rate(0), 0.2);  // the warm-up
  EXPECT_EQ(s.rate(5), 1);
  EXPECT_EQ(s.rate(500), 1);
  EXPECT_EQ(s.rate(500, 1), 0.5);
  EXPECT_EQ(s.rate(500, 2), 0.25);
  EXPECT_EQ(s.rate(500, 3), 0.2);
  for (int evaluations : {0, 1, 2, 3, 4}) EXPECT_EQ(s.FallsAfter(evaluations), evaluations >= 3);
  EXPECT_FALSE(Make({.schedule = "plateau"}).FallsAfter(4));
  EXPECT_TRUE(Make({.schedule = "plateau"}).FallsAfter(5));
  EXPECT_FALSE(Make({}).FallsAfter(1000));
  EXPECT_FALSE(Make({}).waits());
}

TEST(Schedule, RefusesKeysThatContradict) {
  EXPECT_THROW(Make({.decay_patience = 2}), UsageError);
  EXPECT_THROW(Make({.schedule = "plateau", .decay_every = 2}), UsageError);
  EXPECT_THROW(Make({.lr = 1, .schedule = "rising"}), UsageError);
  EXPECT_THROW(Make({.lr = 0.1, .schedule = "rising", .lr_min = 0.2}), UsageError);
  EXPECT_THROW(Make({.schedule = "triangle"}), UsageError);
  EXPECT_THROW(Make({.schedule = "step"}), UsageError);
  EXPECT_THROW(Make({.schedule = "step", .decay_epochs = {1}, .decay_every = 2}), UsageError);
  EXPECT_THROW(Make({.decay_epochs = {1}}), UsageError);
  EXPECT_THROW(Make({.schedule = "cosine", .decay_every = 2}), UsageError);
  EXPECT_THROW(Make({.lr_min = 0.01}), UsageError);
  EXPECT_THROW(Make({.lr = 0.1, .schedule = "cosine", .lr_min = 0.2}), UsageError);
}

}  // namespace
}  // namespace trireme
