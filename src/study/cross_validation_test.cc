#include "study/cross_validation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"
#include "data/folds.h"
#include "data/sources.h"
#include "model/predictor.h"
#include "report/page/page_html.h"
#include "trainer/train.h"

namespace trireme {
namespace {

std::string After(const std::vector<std::string>& words, const std::string& word) {
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

// Cross-validation in this process: a fold is trained as `trireme train` does it.
class CrossValidationTest : public testing::Test {
 protected:
  TemporaryDirectory folder_;
  FoldsPlan plan_;
  LogOutput output_{2, LogLevel::kError};
  const Log log_{output_, Log::kNoRank};
  std::vector<std::string> trained_;  // folders, in order
  size_t stop_after_ = 1000;
  std::string fails_;

  CrossValidationTest() {
    plan_.recipe.model.name = "mlp:4-6-3";
    plan_.recipe.data.folds = 4;
    plan_.recipe.trainer.steps = 40;
    plan_.recipe.trainer.threads = 1;
    plan_.recipe.transport.name = "threads";
    plan_.out = folder_ / "out";
  }

  void Train(const std::string& recipe_file, const std::string& set, const std::string& out) {
    Recipe recipe;
    Sections sections;
    Bind(sections, recipe);
    LoadRecipe(sections, recipe_file);
    sections.SetAssignment(set);
    const Job job = PrepareJob(recipe, BackendOf(recipe));
    RunDirectory directory = RunDirectory::Create(out, ConfigText(job.recipe));
    Progress progress(ProgressStyle::kQuiet, output_);
    const Signals signals;
    Launcher launcher(recipe.transport, false, {});
    ASSERT_EQ(trireme::Train(job, {.directory = &directory,
                                   .progress = progress,
                                   .signals = signals,
                                   .log = log_,
                                   .launcher = launcher,
                                   .show_ranks = false,
                                   .report = [](const Outcome&) {}}),
              0);
  }

  int Run() {
    return TrainFolds(plan_, {.train =
                                  [&](const auto& words, const std::string& log) {
                                    trained_.push_back(After(words, "--out"));
                                    ReplaceFile(log, "0.2 error: it is too hot\n");
                                    if (trained_.back() == fails_) return 1;
                                    if (trained_.size() > stop_after_) return 143;
                                    Train(words[1], After(words, "--set"), trained_.back());
                                    return 0;
                                  },
                              .stopped = [&] { return trained_.size() > stop_after_ ? 143 : 0; },
                              .say = [](const std::string&) {}});
  }
};

// All that was said of samples that were held out, one after another, compared pair by pair.
TEST_F(CrossValidationTest, PooledNumbersAreThoseOfAllHeldOutPredictions) {
  ASSERT_EQ(Run(), 0);
  const FoldsResult result = ReadFolds(plan_, log_);
  std::vector<int32_t> labels;
  std::vector<std::vector<float>> scores;
  for (int fold = 0; fold < 4; ++fold) {
    const SavedModel model = LoadSavedModel(plan_.Folder(fold), log_);
    EXPECT_EQ(model.recipe.data.fold, fold + 1);
    const DataSet data = OpenData(model.recipe.data, model.recipe.trainer.seed);
    const Backend backend = BackendOf(model.recipe)({});
    Predictor predictor(model, *backend.engine);
    predictor.Run(*data.test, [&](int64_t i, const Prediction& prediction) {
      labels.push_back(data.test->label(i));
      scores.emplace_back(prediction.probabilities.begin(), prediction.probabilities.end());
    });
  }
  ASSERT_EQ(labels.size(), 150u);
  EXPECT_EQ(result.pooled.samples, 150);
  Confusion confusion(3, std::vector<int64_t>(3));
  int64_t correct = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto said = std::max_element(scores[i].begin(), scores[i].end()) - scores[i].begin();
    ++confusion[size_t(labels[i])][size_t(said)];
    correct += said == labels[i];
  }
  EXPECT_EQ(result.pooled.confusion, confusion);
  EXPECT_NEAR(result.pooled.accuracy, double(correct) / 150, 1e-12);
  for (int c = 0; c < 3; ++c) {
    double wins = 0, pairs = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      for (size_t j = 0; labels[i] == c && j < labels.size(); ++j) {
        if (labels[j] == c) continue;
        const float a = scores[i][size_t(c)], b = scores[j][size_t(c)];
        wins += a > b ? 1 : a == b ? 0.5 : 0;
        ++pairs;
      }
    }
    EXPECT_NEAR(*result.roc.classes[size_t(c)].auc, wins / pairs, 1e-12);
  }

  // The folds' own numbers: sums of their matrices, mean and deviation.
  Confusion sum(3, std::vector<int64_t>(3));
  double mean = 0, squares = 0;
  for (const Json& summary : result.summaries) {
    for (size_t r = 0; r < 3; ++r) {
      for (size_t c = 0; c < 3; ++c) {
        sum[r][c] += summary.At("confusion").Items()[r].Items()[c].AsInt();
      }
    }
    mean += summary.At("macro_auc").AsDouble() / 4;
  }
  for (const Json& summary : result.summaries) {
    squares += std::pow(summary.At("macro_auc").AsDouble() - mean, 2);
  }
  EXPECT_EQ(sum, confusion);
  const Json json = FoldsJson(plan_, result);
  EXPECT_NEAR(json.At("mean").At("macro_auc").AsDouble(), mean, 1e-12);
  EXPECT_NEAR(json.At("deviation").At("macro_auc").AsDouble(), std::sqrt(squares / 3), 1e-12);
  EXPECT_EQ(json.At("runs").Items().size(), 4u);

  const std::string text = FoldsText(result);
  EXPECT_NE(text.find("deviation"), text.npos) << text;
  const Page page = FoldsPage(plan_, result, "trireme train --folds 4");
  const std::string html = PageHtml(page);
  for (const char* part :
       {"4-fold cross-validation", "ROC curves", "Confusion", "fold-3", "mean"}) {
    EXPECT_NE(html.find(part), html.npos) << part;
  }
}

TEST_F(CrossValidationTest, WhatIsDoneIsNotTrainedAgain) {
  for (const size_t stop : {0, 2}) {
    RemoveTree(plan_.out);
    trained_.clear();
    stop_after_ = stop;
    EXPECT_EQ(Run(), 143);
    EXPECT_THROW(ReadFolds(plan_, log_), Error);
    stop_after_ = 1000;
    trained_.clear();
    EXPECT_EQ(Run(), 0);
    EXPECT_EQ(trained_.size(), 4 - stop);
  }
  trained_.clear();
  EXPECT_EQ(Run(), 0);
  EXPECT_TRUE(trained_.empty());
  plan_.recipe.trainer.seed = 5;
  EXPECT_THROW(Run(), UsageError);
}

TEST_F(CrossValidationTest, AFoldThatFailsIsNamedAndTriedAgain) {
  fails_ = plan_.Folder(1);
  try {
    Run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "fold 2: it is too hot");
  }
  EXPECT_EQ(trained_.size(), 2u);
  fails_.clear();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(trained_.size(), 5u);
}

TEST_F(CrossValidationTest, RefusesWhatCannotBe) {
  EXPECT_NO_THROW(CheckFolds(plan_));
  FoldsPlan plan = plan_;
  plan.recipe.data.folds = 1;
  EXPECT_THROW(CheckFolds(plan), UsageError);
  plan.recipe.data.folds = 151;
  EXPECT_THROW(CheckFolds(plan), UsageError);
  plan = plan_;
  plan.parallel = 0;
  EXPECT_THROW(CheckFolds(plan), UsageError);
  plan = plan_;
  plan.recipe.record.trace = "t.json";
  EXPECT_THROW(CheckFolds(plan), UsageError);
}

}  // namespace
}  // namespace trireme
