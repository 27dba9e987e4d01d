#include "trainer/early_hint.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/memory_source.h"

namespace trireme {
namespace {

class EarlyHintTest : public testing::Test {
 protected:
  EarlyHintTest() {
    Label({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    for (int i = 0; i < 10; ++i) job_.data.classes.push_back("class " + std::to_string(i));
    job_.plan = {.samples = 3200, .batch = 32};
    job_.plan.steps = 1000;
    job_.recipe.optimizer.lr = 0.02;
    test_.confusion.assign(10, std::vector<int64_t>(10, 1));
  }
  void Label(const std::vector<int32_t>& labels) {
    job_.data.train = std::make_unique<FloatSource>(
        SampleShape{1, 1, 1}, std::vector<float>(labels.size(), 0.5f), labels);
  }
  std::string Say(double train, double test) {
    EpochRecord record;
    record.epoch = 1;
    record.train_loss = train;
    test_.loss = test;
    return EarlyHint(job_, record, test_, [&] {
      ++asked_;
      if (fails_) throw Error("no memory");
      return dead_;
    });
  }
  void TakeAllFor(size_t label) {
    for (auto& row : test_.confusion) {
      row.assign(10, 0);
      row[label] = 5;
    }
  }

  Job job_;
  Evaluation test_;
  std::optional<DeadUnits> dead_;
  int asked_ = 0;
  bool fails_ = false;
};

TEST_F(EarlyHintTest, NothingIsSaidOfARunThatLearns) {
  EXPECT_EQ(Say(2.2, 2.1), "");
  EXPECT_EQ(Say(2.5, 1.9), "");
  EXPECT_EQ(Say(NAN, 2.4), "");
  EXPECT_EQ(asked_, 0);
}

TEST_F(EarlyHintTest, ALossThatIsThatOfGuessing) {
  EXPECT_EQ(
      Say(2.31, 2.304),
      "after epoch 1 the network has learned nothing so far: the training loss 2.31 is that of "
      "guessing among 10 classes (2.303); try --lr 0.002");
  EXPECT_EQ(asked_, 1);
  job_.recipe.optimizer.lr = 1;
  EXPECT_NE(Say(129, 345).find("worse than that of guessing"), std::string::npos);
  EXPECT_NE(Say(129, 345).find("try --lr 0.02"), std::string::npos);
  fails_ = true;
  EXPECT_NE(Say(129, 345).find("try --lr 0.02"), std::string::npos);
}

TEST_F(EarlyHintTest, DeadUnitsAreTheCause) {
  job_.recipe.optimizer.lr = 1;
  dead_ = DeadUnits{.layer = "fc1", .dead = 97, .units = 100};
  EXPECT_NE(Say(2.31, 2.304)
                .find("; 97 % of the 100 units of fc1 never fire (dead ReLUs); try "
                      "--lr 0.02"),
            std::string::npos);
  job_.recipe.optimizer.lr = 0.02;
  EXPECT_NE(Say(2.31, 2.304).find("try --lr 0.002"), std::string::npos);
}

TEST_F(EarlyHintTest, OneClassForAll) {
  TakeAllFor(3);
  EXPECT_EQ(Say(1.5, 1.6), "after epoch 1 every test sample is taken for class 3; try --lr 0.002");
  Label({3, 3, 3, 3, 1});
  job_.data.classes = {"class 0", "class 1", "class 2", "class 3"};
  EXPECT_EQ(Say(0.3, 0.3),
            "after epoch 1 every test sample is taken for class 3; 80 % of the training samples "
            "are class 3: try --set data.balance=true");
  job_.class_weights = {1, 1, 1, 1};
  EXPECT_EQ(Say(0.3, 0.3).find("data.balance"), std::string::npos);
  for (size_t c = 1; c < 10; ++c) test_.confusion[c].assign(10, 0);  // the test has one class
  EXPECT_EQ(Say(0.3, 0.3), "");
}

TEST_F(EarlyHintTest, IsDueOnceThereWereSteps) {
  EXPECT_FALSE(IsTimeForHint(job_, 99));
  EXPECT_TRUE(IsTimeForHint(job_, 100));
  EXPECT_FALSE(IsTimeForHint(job_, 1000));  // the end of the run says it
  job_.recipe.optimizer.warmup_epochs = 2;
  EXPECT_FALSE(IsTimeForHint(job_, 199));
  EXPECT_TRUE(IsTimeForHint(job_, 200));
  job_.recipe.optimizer.name = "lbfgs";
  EXPECT_FALSE(IsTimeForHint(job_, 200));
}

}  // namespace
}  // namespace trireme
