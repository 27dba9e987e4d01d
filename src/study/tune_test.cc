#include "study/tune.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "record/metrics.h"

namespace trireme {
namespace {

TEST(SearchSpace, RangesAndListsAreDrawnByKeySeedAndTrialAlone) {
  const std::vector<SearchKey> keys = {
      ParseSearchKey("optimizer.lr=1e-4..1e-1:log"), ParseSearchKey("trainer.batch=8..10"),
      ParseSearchKey("model.dropout=0..0.5"), ParseSearchKey("optimizer.name=sgd,adamw")};
  std::set<std::string> batches, names;
  int small = 0;
  for (int trial = 1; trial <= 200; ++trial) {
    const std::vector<std::string> values = DrawValues(keys, 7, trial);
    const double rate = *ParseNumber<double>(values[0]), dropout = *ParseNumber<double>(values[2]);
    EXPECT_GE(rate, 1e-4);
    EXPECT_LE(rate, 1e-1);
    small += rate < std::sqrt(1e-5);  // the middle of the logarithms
    EXPECT_GE(dropout, 0);
    EXPECT_LE(dropout, 0.5);
    batches.insert(values[1]);
    names.insert(values[3]);
    EXPECT_EQ(DrawValues(keys, 7, trial), values);
    // Other keys beside it change nothing.
    EXPECT_EQ(DrawValues({keys[2]}, 7, trial)[0], values[2]);
  }
  EXPECT_GT(small, 60);
  EXPECT_LT(small, 140);
  EXPECT_EQ(batches, (std::set<std::string>{"10", "8", "9"}));
  EXPECT_EQ(names, (std::set<std::string>{"adamw", "sgd"}));
  EXPECT_NE(DrawValues(keys, 7, 1), DrawValues(keys, 8, 1));
}

TEST(SearchSpace, RefusesWhatIsNoRange) {
  for (const char* text :
       {"optimizer.lr", "optimizer.lr=", "optimizer.rl=0.1..1", "optimizer.lr=1..0.1",
        "optimizer.lr=0..1:log", "optimizer.lr=a..b", "optimizer.lr=-1..1",
        "optimizer.momentum=0.5..1", "trainer.batch=1.5..8", "optimizer.name=sgd,dgs"}) {
    EXPECT_THROW(ParseSearchKey(text), UsageError) << text;
  }
}

// A loss that falls from rate 1e-3 on and explodes above 1, in 240 steps from 1e-5 to 10.
std::pair<std::vector<double>, std::vector<double>> Valley() {
  std::vector<double> rates, losses;
  for (int i = 0; i < 240; ++i) {
    const double power = -5 + 6.0 * i / 239;
    rates.push_back(std::pow(10, power));
    const double fallen = 2.3 - 1.5 * std::max(0.0, std::min(1.0, (power + 3) / 2.5));
    const double noise = 0.05 * std::sin(double(i) * 12.9898);
    losses.push_back(power > 0 ? 3 * std::pow(30, power) : fallen + noise);
  }
  return {rates, losses};
}

TEST(RateRange, SuggestsATenthOfTheRateWithTheLowestLoss) {
  auto [rates, losses] = Valley();
  const RangeResult result = JudgeRange(rates, losses);
  ASSERT_TRUE(result.suggestion());
  EXPECT_GT(*result.suggestion(), 0.02);
  EXPECT_LT(*result.suggestion(), 0.1);
  EXPECT_LT(result.rates.back(), 10);  // what exploded is left out
  losses[200] = NAN;                   // nothing counts from there on
  EXPECT_LE(JudgeRange(rates, losses).rates.size(), 200u);
}

TEST(RateRange, SaysSoIfTheLossNeverFalls) {
  auto [rates, losses] = Valley();
  for (double& loss : losses) loss = 2.3;
  const RangeResult flat = JudgeRange(rates, losses);
  EXPECT_FALSE(flat.suggestion());
  EXPECT_NE(RangeText(flat, {}).find("falls at no rate"), std::string::npos);
  losses.assign(losses.size(), NAN);
  EXPECT_THROW(JudgeRange(rates, losses), Error);
}

TEST(RateRange, RefusesWhatHasNoRate) {
  Recipe recipe;
  recipe.optimizer.name = "lbfgs";
  EXPECT_THROW(RangeRecipe(recipe), UsageError);
  recipe.optimizer = {.scale_lr = true};
  EXPECT_THROW(RangeRecipe(recipe), UsageError);
}

SweepRun Accurate(double accuracy) {
  SweepRun run;
  run.test_accuracy = accuracy;
  return run;
}

TEST(Tune, AValidationPartDecidesAndAnRmseIsBetterIfItIsLower) {
  SweepRun run = Accurate(0.9);
  EXPECT_EQ(MeritOf(run), 0.9);
  run.validation_accuracy = 0.7;
  EXPECT_EQ(MeritOf(run), 0.7);
  SweepRun numbers;
  numbers.test_rmse = 3;
  EXPECT_EQ(MeritOf(numbers), -3);
  numbers.validation_rmse = 4;
  EXPECT_EQ(MeritOf(numbers), -4);
  run.error = "it is too hot";
  EXPECT_EQ(MeritOf(run), std::nullopt);
}

TEST(Tune, TheBestThirdSurvives) {
  std::vector<Trial> rung;
  for (int i = 1; i <= 7; ++i) rung.push_back({.number = i, .run = Accurate(0.1 * (i % 4))});
  rung[2].run.error = "failed";  // would have been the best with 7
  EXPECT_EQ(Survivors(rung), (std::vector<int>{2, 6, 7}));
}

// A folder, and somebody who does not train: the accuracy is 1 - |log10(rate) + 2|.
class TuneTest : public testing::Test {
 protected:
  TuneTest() {
    plan_.recipe.trainer.epochs = 18;
    plan_.keys = {ParseSearchKey("optimizer.lr=1e-4..1:log")};
    plan_.trials = 9;
    plan_.out = folder_ / "t";
  }

  int Run(TunePlan& plan) {
    CheckTune(plan);
    AdoptTune(plan);
    const auto train = [&](const std::vector<std::string>& words, const std::string&) {
      const auto out = std::find(words.begin(), words.end(), "--out");
      const std::string folder = *(out + 1);
      MakeDirectories(folder);
      if (folder.ends_with("/range")) return Range(folder);
      double rate = 0;
      std::string epochs = "18";
      for (const std::string& word : words) {
        if (word.starts_with("optimizer.lr=")) rate = *ParseNumber<double>(word.substr(13));
        if (word.starts_with("trainer.epochs=")) epochs = word.substr(15);
      }
      trained_.push_back(epochs);
      if (trained_.size() > stop_after_) return 143;
      Json summary = Json::Object();
      summary.Add("train_seconds", 1.0).Add("samples_per_second", 1.0);
      summary.Add("test_accuracy", 1 - std::abs(std::log10(rate) + 2) / 4);
      ReplaceFile(folder + "/summary.json", summary.Text());
      return 0;
    };
    const TuneContext context{.train = train,
                              .stopped = [&] { return trained_.size() > stop_after_ ? 143 : 0; },
                              .say = [](const std::string&) {},
                              .enough = [&] { return trained_.size() >= enough_after_; }};
    if (const int code = TestRange(plan, context)) return code;
    return RunTrials(plan, context);
  }

  int Range(const std::string& folder) {
    const auto [rates, losses] = Valley();
    std::string lines;
    for (size_t i = 0; i < rates.size(); ++i) {
      StepRecord record{.step = int64_t(i), .train_loss = losses[i], .lr = rates[i]};
      lines += ToJson(record).Text() + "\n";
    }
    ReplaceFile(folder + "/config.toml", "");
    ReplaceFile(folder + "/metrics.jsonl", lines);
    return 1;  // as a run whose loss is no longer finite
  }

  TunePlan plan_{.name = "x"};
  std::vector<std::string> trained_;  // epochs
  size_t stop_after_ = 1000, enough_after_ = 1000;
  TemporaryDirectory folder_;
};

TEST_F(TuneTest, FindsTheBestTrialAndWritesItsRecipe) {
  EXPECT_EQ(Run(plan_), 0);
  EXPECT_EQ(trained_.size(), 9u);
  const TuneResult result = ReadTune(plan_);
  ASSERT_TRUE(result.best);
  const double rate = BestRecipe(plan_, result).optimizer.lr;
  for (const Trial& trial : result.trials) {
    EXPECT_GE(std::abs(std::log10(*ParseNumber<double>(trial.values[0])) + 2),
              std::abs(std::log10(rate) + 2));
  }
  EXPECT_NE(TuneText(plan_, result).find("best"), std::string::npos);
}

TEST_F(TuneTest, StoppedAndStartedAgainItGivesTheSameTable) {
  EXPECT_EQ(Run(plan_), 0);
  const std::string whole = TuneText(plan_, ReadTune(plan_)), csv = TuneCsv(plan_, ReadTune(plan_));
  plan_.out = folder_ / "again";
  trained_.clear();
  stop_after_ = 4;
  EXPECT_EQ(Run(plan_), 143);
  EXPECT_EQ(ReadTune(plan_).trials.size(), 4u);
  stop_after_ = 1000;
  EXPECT_EQ(Run(plan_), 0);
  EXPECT_EQ(trained_.size(), 10u);  // the one that was stopped is begun anew
  EXPECT_EQ(TuneText(plan_, ReadTune(plan_)), whole);
  EXPECT_EQ(TuneCsv(plan_, ReadTune(plan_)), csv);
  plan_.trials = 12;
  EXPECT_THROW(AdoptTune(plan_), UsageError);
}

TEST_F(TuneTest, HalvingTrainsFewerTrialsLonger) {
  plan_.halving = true;
  EXPECT_EQ(Run(plan_), 0);
  EXPECT_EQ(trained_.size(), 9u + 3 + 1);
  EXPECT_EQ(trained_.front(), "2");
  EXPECT_EQ(trained_[9], "6");
  EXPECT_EQ(trained_.back(), "18");
  const TuneResult result = ReadTune(plan_);
  EXPECT_EQ(result.trials.size(), 9u);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.trials[*result.best].rung, 3);
  EXPECT_EQ(BestRecipe(plan_, result).trainer.epochs, 18);
  plan_.keys.push_back(ParseSearchKey("trainer.epochs=1..5"));
  EXPECT_THROW(CheckTune(plan_), UsageError);
}

TEST_F(TuneTest, WithoutTimeForMoreTheBestSoFarIsTold) {
  enough_after_ = 3;
  EXPECT_EQ(Run(plan_), 0);
  EXPECT_EQ(ReadTune(plan_).trials.size(), 3u);
  EXPECT_TRUE(ReadTune(plan_).best);
}

TEST_F(TuneTest, WithoutTrialsTheSuggestionIsTheRate) {
  plan_.trials = 0;
  plan_.keys.clear();
  EXPECT_EQ(Run(plan_), 0);
  const TuneResult result = ReadTune(plan_);
  EXPECT_EQ(BestRecipe(plan_, result).optimizer.lr, *result.range.suggestion());
  const SearchKey key = KeysAround(0.02)[0];
  EXPECT_EQ(key.low, 0.002);
  EXPECT_EQ(key.high, 0.2);
}

}  // namespace
}  // namespace trireme
