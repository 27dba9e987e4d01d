#include "trainer/chance_level.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/label.h"
#include "data/balance.h"
#include "data/memory_source.h"

namespace trireme {
namespace {

std::unique_ptr<Source> Labelled(std::vector<int32_t> labels) {
  std::vector<float> values(labels.size(), 0.5f);
  return std::make_unique<FloatSource>(SampleShape{1, 1, 1}, std::move(values), std::move(labels));
}

TEST(GuessingLoss, IsThatOfTheClassesShares) {
  EXPECT_NEAR(GuessingLoss({}, *Labelled({0, 1, 2, 3}), 4), std::log(4.0), 1e-12);
  EXPECT_NEAR(GuessingLoss({}, *Labelled({0, 0, 0, 1}), 2),
              -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-12);
  EXPECT_NEAR(GuessingLoss({.smoothing = 0.2f}, *Labelled({0, 0}), 2),
              -0.9 * std::log(0.9) - 0.1 * std::log(0.1), 1e-6);
  EXPECT_NEAR(GuessingLoss({.loss = "squared-error"}, *Labelled({0, 1, 2, 3}), 4), 0.375, 1e-12);
  EXPECT_NEAR(GuessingLoss({.loss = "absolute-error"}, *Labelled({0, 1, 2, 3}), 4), 1, 1e-12);
  EXPECT_NEAR(GuessingLoss({.loss = "absolute-error"}, *Labelled({0, 0, 0, 1}), 2), 0.5, 1e-12);
  EXPECT_EQ(GuessingLoss({}, *Labelled({1, 1}), 2), 0);
}

TEST(GuessingLoss, OfNumbersIsThatOfTheBestOne) {
  std::vector<int32_t> labels;
  for (const float number : {10.0f, 12.0f, 14.0f, 20.0f, 24.0f}) {
    labels.push_back(LabelOfNumber(number));
  }
  const TargetScale target{16, 2};
  EXPECT_NEAR(GuessingLoss({.loss = "squared-error"}, *Labelled(labels), target), 27.2 / 4 / 2,
              1e-6);
  EXPECT_NEAR(GuessingLoss({.loss = "absolute-error"}, *Labelled(labels), target), 22.0 / 5 / 2,
              1e-6);
}

TEST(GuessingLoss, OfBalancedClassesIsThatOfEqualOnes) {
  const auto samples = Labelled({0, 0, 0, 1});
  EXPECT_NEAR(GuessingLoss({}, *samples, 2, BalancedWeights(*samples, 2)), std::log(2.0), 1e-6);
}

class LearnedNothingTest : public testing::Test {
 protected:
  LearnedNothingTest() {
    std::vector<int32_t> labels;
    for (int i = 0; i < 100; ++i) labels.push_back(i % 10);
    job_.data.train = Labelled(labels);
    for (int i = 0; i < 10; ++i) job_.data.classes.push_back(std::to_string(i));
  }
  std::string Say(double train, double test, int64_t steps = 1000) {
    Summary summary;
    summary.train_loss = train;
    summary.test_loss = test;
    summary.steps = steps;
    return LearnedNothing(job_, summary);
  }

  Job job_;
};

TEST_F(LearnedNothingTest, IsSaidWithTheUsualRate) {
  job_.recipe.optimizer.lr = 0.1;
  EXPECT_EQ(Say(2.31, 2.304),
            "the network has learned nothing: the training loss 2.31 is that of guessing among 10 "
            "classes (2.303); try --lr 0.02");
  job_.recipe.optimizer.lr = 1e-9;
  EXPECT_NE(Say(2.31, 2.304).find("try --lr 0.02"), std::string::npos);
  job_.recipe.optimizer.lr = 0.02;
  EXPECT_NE(Say(2.31, 2.304).find("try --lr 0.002"), std::string::npos);
  EXPECT_NE(Say(2.31, 2.304, 100).find("try more --epochs"), std::string::npos);
  EXPECT_NE(Say(129, 345).find("worse than that of guessing"), std::string::npos);
}

TEST_F(LearnedNothingTest, IsNotSaidOfANetworkThatKnowsSomething) {
  EXPECT_EQ(Say(2.2, 2.2), "");
  EXPECT_EQ(Say(2.5, 1.2), "");  // the first steps of its only epoch were bad
  EXPECT_EQ(Say(2.31, 2.304, 5), "");
  EXPECT_EQ(Say(NAN, 2.4), "");
  EXPECT_EQ(Say(2.4, INFINITY), "");
  job_.data.train = Labelled({1, 1});
  EXPECT_EQ(Say(0.1, 0.1), "");
}

}  // namespace
}  // namespace trireme
