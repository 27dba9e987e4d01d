#include "record/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace trireme {
namespace {

TEST(ProgressText, CountsAreShort) {
  EXPECT_EQ(CountText(12.34), "12.3");
  EXPECT_EQ(CountText(950.2), "950");
  EXPECT_EQ(CountText(12345), "12.3k");
  EXPECT_EQ(CountText(999499), "999k");
  EXPECT_EQ(CountText(4560000), "4.56M");
}

TEST(ProgressText, ALineFitsItsWidthAndKeepsWhatMatters) {
  const StepProgress progress{
      .epoch = 3, .epochs = 10, .step = 1234, .steps = 5000, .loss = 0.43214, .accuracy = 0.912};
  const Pace pace{.samples_per_second = 12345, .seconds_left = 80};
  EXPECT_EQ(
      StepLine(progress, pace, 200),
      "epoch 3/10 | step 1234/5000 | loss 0.4321 | 91.2 % | 12.3k samples/s | 1 min 20 s left");
  EXPECT_EQ(StepLine(progress, pace, 60),
            "epoch 3/10 | step 1234/5000 | loss 0.4321 | 1 min 20 s left");
  EXPECT_EQ(StepLine(progress, pace, 50), "epoch 3/10 | loss 0.4321 | 1 min 20 s left");
  for (int width = -1; width < 100; ++width) {
    EXPECT_LE(static_cast<int>(StepLine(progress, pace, width).size()), std::max(width, 0));
  }
}

TEST(ProgressText, UnknownThingsAreLeftOut) {
  EXPECT_EQ(StepLine({.epoch = 1, .step = 5, .loss = 1e-6}, {}, 80),
            "epoch 1 | step 5 | loss 1.000e-06");
  EXPECT_EQ(EpochsText(3), "3");
  EXPECT_EQ(EpochsText(2.44), "2.4");
  EXPECT_EQ(EpochsText(0.0312), "0.03");
  EpochRecord record{.epoch = 2, .train_loss = 0.5, .samples_per_second = 2000, .seconds = 3};
  EXPECT_EQ(EpochLine(record, 10), "epoch 2/10 | train loss 0.5000 | 2k samples/s | 3.0 s");
  record.test_loss = 0.25, record.test_accuracy = 0.925;
  EXPECT_EQ(EpochLine(record, 0),
            "epoch 2 | train loss 0.5000 | test loss 0.2500, 92.50 % | 2k samples/s | 3.0 s");
}

class ProgressTest : public testing::Test {
 protected:
  ProgressOutput Output() {
    return {
        .line = [this](std::string_view text, const Highlight&) { written_.emplace_back(text); },
        .live =
            [this](std::string_view text) {
              if (live_ != text) written_.push_back("live: " + std::string(text));
              live_ = text;
            },
        .width = [] { return 80; },
        .seconds =
            [this] {
              ++looks_;
              return now_;
            }};
  }

  void RunSteps(Progress& progress, int64_t from, int64_t to, double seconds_per_step) {
    for (int64_t step = from; step <= to; ++step) {
      now_ += seconds_per_step;
      progress.Step(step, [&] {
        return StepProgress{
            .epoch = 1, .epochs = 2, .step = step, .steps = to, .samples = step * 4, .loss = 0.5};
      });
    }
  }

  std::vector<std::string> written_;
  std::string live_;
  double now_ = 1000;
  int looks_ = 0;
};

TEST_F(ProgressTest, ATerminalIsDrawnTenTimesASecondAndLeftClean) {
  {
    Progress progress(ProgressStyle::kTerminal, Output());
    RunSteps(progress, 1, 1000000, 4e-6);  // four seconds
    EXPECT_GE(written_.size(), 30u);
    EXPECT_LE(written_.size(), 42u);
    EXPECT_LT(looks_, 300) << "the clock is not looked at in every step";
    for (const std::string& text : written_) {
      EXPECT_TRUE(text.starts_with("live: epoch 1/2 | step ")) << text;
    }
    EXPECT_NE(written_.back().find("| 1M samples/s | "), std::string::npos) << written_.back();
    progress.Message("note");
    EXPECT_EQ(written_.back(), "note");
    RunSteps(progress, 1000001, 1200000, 4e-6);
    EXPECT_NE(written_.back(), "note");
  }
  EXPECT_EQ(written_.back(), "live: ");
}

TEST_F(ProgressTest, SlowStepsAreAllShown) {
  Progress progress(ProgressStyle::kTerminal, Output());
  RunSteps(progress, 1, 20, 3.0);
  EXPECT_EQ(written_.size(), 20u);
  EXPECT_NE(written_[9].find("| 30.0 s left"), std::string::npos) << written_[9];
}

TEST_F(ProgressTest, PlainLinesComeEveryFewSecondsAndPerEpoch) {
  Progress progress(ProgressStyle::kPlain, Output());
  RunSteps(progress, 1, 2100, 0.01);  // 21 seconds
  EXPECT_EQ(written_.size(), 4u);
  for (const std::string& text : written_) {
    EXPECT_FALSE(text.starts_with("live: "));
    EXPECT_TRUE(text.ends_with(" left")) << text;
    EXPECT_NE(text.find("samples/s"), text.npos) << text;
  }
  progress.Epoch({.epoch = 1, .train_loss = 0.5}, 3);
  EXPECT_TRUE(written_.back().starts_with("epoch 1/3 | train loss 0.5000")) << written_.back();
  now_ += 0.1;
  progress.Epoch({.epoch = 2}, 3);
  EXPECT_TRUE(written_.back().starts_with("epoch 1/3")) << "epochs that fly by are not all shown";
  progress.Epoch({.epoch = 3}, 3);
  EXPECT_TRUE(written_.back().starts_with("epoch 3/3"));
}

TEST_F(ProgressTest, TheRateIsThatOfTrainingNotOfEvaluation) {
  Progress progress(ProgressStyle::kTerminal, Output());
  int64_t step = 0;
  for (int64_t epoch = 1; epoch <= 5; ++epoch) {
    RunSteps(progress, step + 1, step + 100, 0.01);  // 400 samples/s
    step += 100;
    now_ += 20;
    progress.Epoch({.epoch = double(epoch), .evaluation_seconds = 20}, 5);
  }
  RunSteps(progress, step + 1, step + 100, 0.01);
  EXPECT_NE(written_.back().find("| 400 samples/s"), std::string::npos) << written_.back();
}

TEST_F(ProgressTest, JsonGivesOneObjectPerEvent) {
  Progress progress(ProgressStyle::kJson, Output());
  RunSteps(progress, 1, 250, 0.01);
  progress.Epoch({.epoch = 1, .step = 250}, 1);
  progress.Message("a \"remark\"");
  progress.End(Summary{.epochs = 1});
  std::vector<std::string> events;
  for (const std::string& text : written_) {
    events.push_back(ParseJson(text, "t").At("event").AsString());
  }
  EXPECT_EQ(events, (std::vector<std::string>{"progress", "progress", "epoch", "message", "end"}));
  EXPECT_EQ(ParseJson(written_.back(), "t").At("epochs").AsInt(), 1);
}

TEST_F(ProgressTest, RecordsAreHandedOnAndNothingIsDrawn) {
  std::vector<double> epochs;
  ProgressOutput output = Output();
  output.epoch = [&](const EpochRecord& record, int64_t all) {
    EXPECT_EQ(all, 7);
    epochs.push_back(record.epoch);
  };
  {
    Progress progress(ProgressStyle::kHandedOn, output);
    for (int64_t step = 1; step <= 100; ++step) {
      progress.Step(step, [&]() -> StepProgress { throw std::logic_error("nobody asked"); });
    }
    progress.Epoch({.epoch = 1}, 7);
    progress.Epoch({.epoch = 1.5}, 7);
    progress.Message("a remark");
    progress.End({});
  }
  EXPECT_EQ(epochs, (std::vector<double>{1, 1.5}));
  EXPECT_EQ(written_, (std::vector<std::string>{"a remark"}));
}

TEST_F(ProgressTest, QuietSaysNothing) {
  Progress progress(ProgressStyle::kQuiet, Output());
  RunSteps(progress, 1, 1000, 1);
  progress.Epoch({.epoch = 1}, 1);
  progress.End(Summary{});
  EXPECT_TRUE(written_.empty());
  EXPECT_LE(looks_, 1);
}

}  // namespace
}  // namespace trireme
