#include "study/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "study/sweep_table.h"

namespace trireme {
namespace {

std::string After(const std::vector<std::string>& words, const std::string& start) {
  for (const std::string& word : words) {
    if (word.starts_with(start)) return word.substr(start.size());
  }
  return "";
}

// A folder, and somebody who does not train but says how long it took: 8 s by the number of ranks.
class SweepTest : public testing::Test {
 protected:
  SweepPlan plan_{
      .recipe = "iris",
      .settings = {"trainer.epochs=2"},
      .vary = {{"transport.ranks", {"1", "2", "4"}}, {"transport.name", {"threads", "shm"}}},
      .repeat = 2};
  std::vector<std::string> trained_;  // combinations, in order
  size_t stop_after_ = 1000;
  std::string fails_;  // transport.name
  TemporaryDirectory folder_;

  int Run(bool retry = false) {
    const auto train = [&](const std::vector<std::string>& words, const std::string& log,
                           int count) {
      const std::string ranks = After(words, "transport.ranks="),
                        name = After(words, "transport.name="), out = words.back();
      EXPECT_EQ(std::to_string(count), ranks);
      EXPECT_FALSE(Exists(out)) << "an interrupted run is begun anew";
      MakeDirectories(out);
      trained_.push_back(ranks + name);
      if (trained_.size() > stop_after_) return 143;  // in the middle: no summary
      ReplaceFile(log, "0.1 train: here\n0.2 error: it is too hot\n");
      if (name == fails_) return 1;
      const double n = std::stod(ranks), seconds = name == "shm" ? 8 / n : 8;
      Json summary = Json::Object();
      summary.Add("train_seconds", seconds).Add("samples_per_second", 800 / seconds);
      summary.Add("test_accuracy", 0.5);
      ReplaceFile(out + "/summary.json", summary.Text());
      return 0;
    };
    return RunSweep(plan_, {.out = folder_ / "s",
                            .retry = retry,
                            .train = train,
                            .stopped = [&] { return trained_.size() > stop_after_ ? 143 : 0; },
                            .say = [](const std::string&) {}});
  }
  std::vector<SweepNumbers> Numbers() { return NumbersOf(plan_, ReadSweep(plan_, folder_ / "s")); }
};

TEST_F(SweepTest, RunsAllCombinationsOnceThenAgain) {
  EXPECT_EQ(Run(), 0);
  const std::vector<std::string> once = {"1threads", "1shm",     "2threads",
                                         "2shm",     "4threads", "4shm"};
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(trained_, twice);
}

TEST_F(SweepTest, SpeedUpIsAgainstTheFirstNumberOfRanksOfTheSameKind) {
  Run();
  const auto rows = Numbers();
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[5].combination.values, (std::vector<std::string>{"4", "shm"}));
  EXPECT_DOUBLE_EQ(rows[5].speedup->median, 4);
  EXPECT_DOUBLE_EQ(*rows[5].efficiency, 1);
  EXPECT_DOUBLE_EQ(rows[4].speedup->median, 1);
  EXPECT_DOUBLE_EQ(*rows[4].efficiency, 0.25);
  const Page page = SweepPage(plan_, rows, "trireme sweep");
  const auto& chart = std::get<LineChart>(page.sections[0].blocks[2]);
  EXPECT_EQ(chart.title, "Speed-up over ranks");
  ASSERT_EQ(chart.curves.size(), 3u);  // two transports and the ideal
  EXPECT_EQ(chart.curves[1].y, (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(chart.curves[2].y, chart.curves[1].y);
}

TEST_F(SweepTest, StoppedAnywhereItGoesOnAndEndsWithTheSameTable) {
  Run();
  const std::string undisturbed = SweepText(plan_, Numbers());
  for (size_t stop = 0; stop < 12; ++stop) {
    RemoveTree(folder_ / "s");
    trained_.clear();
    stop_after_ = stop;
    EXPECT_EQ(Run(), 143);
    trained_.clear();
    stop_after_ = 1000;
    EXPECT_EQ(Run(), 0);
    EXPECT_EQ(trained_.size(), 12 - stop) << "no run is done twice";
    EXPECT_EQ(SweepText(plan_, Numbers()), undisturbed);
  }
  trained_.clear();
  EXPECT_EQ(Run(), 0);
  EXPECT_TRUE(trained_.empty());
}

TEST_F(SweepTest, WhatFailsIsARowAndIsNotRunAgainUnlessAsked) {
  fails_ = "shm";
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(trained_.size(), 12u);
  auto rows = Numbers();
  EXPECT_EQ(rows[1].error, "it is too hot");
  EXPECT_FALSE(rows[1].seconds);
  EXPECT_TRUE(rows[0].seconds);
  EXPECT_NE(SweepText(plan_, rows).find("failed: it is too hot"), std::string::npos);
  EXPECT_NE(SweepCsv(plan_, rows).find("1,shm,1,,,,,it is too hot\n"), std::string::npos);
  EXPECT_EQ(SweepJson(plan_, rows).At("rows").Items()[1].At("error").AsString(), "it is too hot");
  trained_.clear();
  Run();
  EXPECT_TRUE(trained_.empty());
  fails_.clear();
  Run(/*retry=*/true);
  EXPECT_EQ(trained_.size(), 6u);
  EXPECT_TRUE(Numbers()[1].error.empty());
}

TEST_F(SweepTest, MoreRepetitionsGoOnAndAnotherSweepIsRefused) {
  Run();
  trained_.clear();
  plan_.repeat = 3;
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(trained_.size(), 6u);
  plan_.settings = {"trainer.epochs=3"};
  EXPECT_THROW(Run(), UsageError);
  plan_.settings = {"trainer.epochs=2"};
  plan_.vary[0].values.push_back("8");
  EXPECT_THROW(Run(), UsageError);
}

TEST(SweepPlan, ReadsValuesWithCommasInside) {
  const Variation v = ParseVariation("optimizer.decay_epochs=[1,2],[3]");
  EXPECT_EQ(v.values, (std::vector<std::string>{"[1,2]", "[3]"}));
  EXPECT_EQ(ParseVariation("data.source=\"a,b\",c").values.size(), 2u);
  EXPECT_THROW(ParseVariation("transport.ranks"), UsageError);
  EXPECT_THROW(ParseVariation("transport.ranks=1,,2"), UsageError);
}

TEST(SweepPlan, RefusesWhatNoRunCouldBe) {
  const auto check = [](std::vector<Variation> vary, std::vector<std::string> settings = {}) {
    CheckPlan({.recipe = "iris", .settings = std::move(settings), .vary = std::move(vary)});
  };
  EXPECT_NO_THROW(check({{"transport.ranks", {"1", "2"}}}));
  EXPECT_THROW(check({{"transport.rank", {"1"}}}), UsageError);
  EXPECT_THROW(check({{"transport.ranks", {"1", "zwei"}}}), UsageError);
  EXPECT_THROW(check({{"transport.ranks", {"1", "1"}}}), UsageError);
  EXPECT_THROW(check({{"trainer.seed", {"1"}}, {"trainer.seed", {"2"}}}), UsageError);
  EXPECT_THROW(check({{"trainer.seed", {"1"}}}, {"trainer.seed=4"}), UsageError);
  EXPECT_THROW(CheckPlan({.recipe = "iris", .repeat = 0}), UsageError);
}

// A server does not train: two ranks of sync-ps are one worker.
TEST(SweepPlan, MayFollowNoRecipe) {
  const SweepPlan plan{.settings = {"data.source=synthetic:8x8x1:5:500"},
                       .vary = {{"optimizer.name", {"sgd", "adam"}}}};
  CheckPlan(plan);
  EXPECT_EQ(NameOf(plan), "synthetic:8x8x1:5:500");
  EXPECT_EQ(TrainWords(plan, Combinations(plan)[1]),
            (std::vector<std::string>{"train", "--set", "data.source=synthetic:8x8x1:5:500",
                                      "--set", "optimizer.name=adam", "--quiet"}));
}

TEST(SweepPlan, CountsWorkersNotRanks) {
  const SweepPlan plan{.recipe = "iris",
                       .vary = {{"strategy.name", {"sync-ps", "allreduce"}},
                                {"transport.ranks", {"3"}},
                                {"trainer.threads", {"2"}}}};
  const auto all = Combinations(plan);
  EXPECT_EQ(ParallelismOf(plan, all[0]), 4);
  EXPECT_EQ(ParallelismOf(plan, all[1]), 6);
}

TEST(SweepPlan, EqualNumbersOfWorkersWhateverTheStrategyNeedsBesides) {
  const SweepPlan plan{
      .recipe = "iris",
      .vary = {{kWorkers, {"1", "2"}},
               {"how",
                {"server", "peers"},
                {{"strategy.name=sync-ps", "strategy.route=star"}, {"strategy.name=allreduce"}}}}};
  CheckPlan(plan);
  const auto all = Combinations(plan);
  ASSERT_EQ(all.size(), 4u);
  std::vector<int> ranks;
  for (const Combination& combination : all) {
    ranks.push_back(RecipeOf(plan, combination).transport.ranks);
  }
  EXPECT_EQ(ranks, (std::vector<int>{2, 1, 3, 2}));
  EXPECT_EQ(ParallelismOf(plan, all[2]), 2);
  EXPECT_EQ(ParallelismOf(plan, all[3]), 2);
  EXPECT_EQ(CombinationText(plan, all[2]), "workers=2, how=server");
  EXPECT_EQ(
      TrainWords(plan, all[2]),
      (std::vector<std::string>{"train", "iris", "--set", "strategy.name=sync-ps", "--set",
                                "strategy.route=star", "--set", "transport.ranks=3", "--quiet"}));
  SweepPlan both = plan;
  both.vary.push_back({"transport.ranks", {"2"}});
  EXPECT_THROW(CheckPlan(both), UsageError);
  SweepPlan set = plan;
  set.settings = {"strategy.route=chain"};
  EXPECT_THROW(CheckPlan(set), UsageError);
  SweepPlan none = plan;
  none.vary[0].values = {"0"};
  EXPECT_THROW(CheckPlan(none), UsageError);
}

TEST_F(SweepTest, ASearchShowsAccuracyAndLossOnALogarithmicAxisAndMarksTheBest) {
  const SweepPlan plan{.recipe = "iris",
                       .vary = {{"optimizer.lr", {"0.0003", "0.001", "0.003", "0.01"}}}};
  std::vector<SweepRow> rows;
  for (const Combination& combination : Combinations(plan)) {
    const double accuracy = combination.index == 2 ? 0.95 : 0.9;
    rows.push_back({combination,
                    {{.folder = "r",
                      .seconds = 2,
                      .samples_per_second = 100,
                      .test_accuracy = accuracy,
                      .test_loss = 0.25}}});
  }
  const auto numbers = NumbersOf(plan, rows);
  EXPECT_EQ(BestRow(plan, numbers), 2u);
  const std::string text = SweepText(plan, numbers);
  EXPECT_EQ(text.find("speed-up"), text.npos) << text;
  EXPECT_NE(text.find("95.00 %     0.2500"), text.npos) << text;
  EXPECT_NE(text.find("  best\n"), text.npos) << text;
  const Page page = SweepPage(plan, numbers, "trireme sweep");
  const auto& table = std::get<PageTable>(page.sections[0].blocks[0]);
  EXPECT_EQ(table.rows[2].back(), "best");
  ASSERT_FALSE(table.bold.empty());
  EXPECT_EQ(table.bold[0].row, 2u);
  const auto& accuracy = std::get<LineChart>(page.sections[0].blocks[1]);
  EXPECT_EQ(accuracy.title, "Test accuracy over optimizer.lr");
  EXPECT_TRUE(accuracy.x.logarithmic);
  EXPECT_EQ(accuracy.curves[0].y[2], 95);
  EXPECT_EQ(std::get<LineChart>(page.sections[0].blocks[2]).title, "Test loss over optimizer.lr");
  EXPECT_NE(SweepCsv(plan, numbers).find("0.003,1,2,100,0.95,0.25,\n"), std::string::npos);
}

TEST_F(SweepTest, WordsAreBars) {
  const SweepPlan plan{.recipe = "iris", .vary = {{"optimizer.name", {"sgd", "adam"}}}};
  std::vector<SweepRow> rows;
  for (const Combination& combination : Combinations(plan)) {
    rows.push_back({combination, {{.seconds = 2, .samples_per_second = 1, .test_accuracy = 0.9}}});
  }
  const auto numbers = NumbersOf(plan, rows);
  EXPECT_EQ(BestRow(plan, numbers), std::nullopt);  // they are alike
  const Page page = SweepPage(plan, numbers, "trireme sweep");
  const auto& bars = std::get<BarChart>(page.sections[0].blocks[1]);
  EXPECT_EQ(bars.bars, (std::vector<std::string>{"sgd", "adam"}));
}

}  // namespace
}  // namespace trireme
