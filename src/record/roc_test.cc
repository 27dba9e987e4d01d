#include "record/roc.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace trireme {
namespace {

TEST(Roc, KnownAreas) {
  RocBuilder perfect;
  perfect.Add(3, 0);
  perfect.Add(0, 5);
  EXPECT_EQ(perfect.Finish(200, false).auc, 1.0);
  RocBuilder opposite;
  opposite.Add(0, 5);
  opposite.Add(3, 0);
  EXPECT_EQ(opposite.Finish(200, false).auc, 0.0);
  RocBuilder blind;  // all have one score
  blind.Add(3, 5);
  const Roc chance = blind.Finish(200, false);
  EXPECT_EQ(chance.auc, 0.5);
  EXPECT_EQ(chance.auc_error, 0);
  EXPECT_EQ(chance.false_positive_rate, (std::vector<double>{0, 1}));
  EXPECT_EQ(blind.Finish(200, true).auc_error, 0.5);  // one bin knows nothing
  RocBuilder lonely;
  lonely.Add(3, 0);
  EXPECT_FALSE(lonely.Finish(200, false).auc);
  EXPECT_TRUE(lonely.Finish(200, false).true_positive_rate.empty());
  EXPECT_FALSE(RocBuilder().Finish(200, false).auc);
}

// The corners that were left out change neither the curve nor the area below it.
TEST(Roc, OnlyCornersStayAndTheyEncloseTheArea) {
  const Random random(3);
  RocBuilder builder;
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t bits = random.Bits(i);
    builder.Add(bits % 5 == 0 ? int64_t(bits >> 8 & 3) : 0, int64_t(bits >> 16 & 3));
  }
  const Roc whole = builder.Finish(size_t(1) << 30, false);
  const auto area = [](const Roc& roc) {
    double sum = 0;
    for (size_t i = 1; i < roc.false_positive_rate.size(); ++i) {
      EXPECT_GE(roc.false_positive_rate[i], roc.false_positive_rate[i - 1]);
      EXPECT_GE(roc.true_positive_rate[i], roc.true_positive_rate[i - 1]);
      sum += (roc.false_positive_rate[i] - roc.false_positive_rate[i - 1]) *
             (roc.true_positive_rate[i] + roc.true_positive_rate[i - 1]) / 2;
    }
    return sum;
  };
  EXPECT_NEAR(area(whole), *whole.auc, 1e-12);
  EXPECT_GT(whole.false_positive_rate.size(), 500u);
  const Roc thin = builder.Finish(50, false);
  EXPECT_EQ(thin.auc, whole.auc);
  EXPECT_LE(thin.false_positive_rate.size(), 50u);
  EXPECT_GE(thin.false_positive_rate.size(), 40u);
  EXPECT_EQ(thin.false_positive_rate.front(), 0);
  EXPECT_EQ(thin.true_positive_rate.back(), 1);
  EXPECT_NEAR(area(thin), *whole.auc, 0.01);

  RocBuilder straight;
  for (int i = 0; i < 1000; ++i) straight.Add(1, 2);
  EXPECT_EQ(straight.Finish(200, false).false_positive_rate.size(), 2u);
}

TEST(Roc, MeansLeaveOutClassesWithoutAnArea) {
  RocCurves curves;
  EXPECT_FALSE(curves.MacroAuc());
  curves.classes.resize(3);
  EXPECT_FALSE(curves.MacroAuc());
  curves.classes[0].auc = 0.5;
  curves.classes[2].auc = 1;
  curves.classes[2].auc_error = 0.125;
  EXPECT_EQ(curves.MacroAuc(), 0.75);
  EXPECT_EQ(curves.AucError(), 0.125);
  EXPECT_EQ(RocPoints(1), 200u);
  EXPECT_EQ(RocPoints(100), 200u);
  EXPECT_EQ(RocPoints(1000), 20u);
  EXPECT_EQ(RocPoints(100000), 20u);
}

}  // namespace
}  // namespace trireme
