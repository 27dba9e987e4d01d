#include "trainer/resume_check.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace trireme {
namespace {

// What decides the weights' shapes, the samples, their order and what is measured on them.
const std::set<std::string> kKept = {"model.name",
                                     "model.activation",
                                     "model.norm",
                                     "model.loss",
                                     "model.stem",
                                     "model.layers",
                                     "model.freeze",
                                     "data.source",
                                     "data.label",
                                     "data.id",
                                     "data.task",
                                     "data.categories",
                                     "data.missing",
                                     "data.balance",
                                     "data.test_fraction",
                                     "data.validation_fraction",
                                     "data.folds",
                                     "data.fold",
                                     "data.limit",
                                     "data.shuffle",
                                     "data.normalize",
                                     "data.mean",
                                     "data.deviation",
                                     "data.size",
                                     "data.centre",
                                     "data.train_folder",
                                     "data.validation_folder",
                                     "data.test_folder",
                                     "data.on_error",
                                     "trainer.seed",
                                     "trainer.batch",
                                     "trainer.batch_per_worker",
                                     "strategy.name",
                                     "optimizer.name",
                                     "optimizer.history",
                                     "optimizer.portion"};

// Another value for the key, any that it takes.
void Change(Sections& sections, const std::string& path) {
  const std::string before = sections.At(path).Toml();
  std::vector<std::string> values = sections.At(path).check().words;
  for (const char* text : {"true", "false", "1", "2", "0.5", "0.25", "x"}) values.push_back(text);
  for (const std::string& value : values) {
    try {
      sections.Set(path, value, Origin::kRecipe, "test");
    } catch (const UsageError&) {
      continue;
    }
    if (sections.At(path).Toml() != before) return;
  }
  ADD_FAILURE() << "no value for " << path;
}

std::string Refusal(const std::string& path) {
  Recipe before;
  before.model.dropout = 0.2;
  Recipe now = before;
  Sections sections;
  Bind(sections, now);
  Change(sections, path);
  try {
    CheckResume(before, now);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

TEST(CheckResume, KeepsWhatMakesTheRunAndNothingElse) {
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  std::set<std::string> kept;
  for (const std::string& path : sections.Paths()) {
    const std::string words = Refusal(path);
    if (words.empty()) continue;
    kept.insert(path);
    EXPECT_EQ(words, "--resume: " + path +
                         " cannot be changed; start a new run (--init takes its weights)");
  }
  EXPECT_EQ(kept, kKept);
}

// What a user tunes on the way: regularisation, how it is computed, how long and by whom.
TEST(CheckResume, LeavesTheRestToTheUser) {
  for (const char* path :
       {"model.dropout", "model.smoothing", "data.augment", "data.least_area", "data.jitter",
        "data.mixup_alpha", "data.magnitude", "data.operations", "trainer.shards",
        "trainer.precision", "engine.winograd", "optimizer.lr", "trainer.epochs",
        "optimizer.schedule", "transport.ranks", "trainer.threads"}) {
    EXPECT_EQ(Refusal(path), "") << path;
  }
}

// The layers' names count those of dropout, too: a checkpoint would not fit.
TEST(CheckResume, KeepsDropoutOrNone) {
  Recipe without, with;
  with.model.dropout = 0.5;
  EXPECT_THROW(CheckResume(without, with), UsageError);
  EXPECT_THROW(CheckResume(with, without), UsageError);
}

TEST(CheckResume, KeepsTheRanksThatDecideTheBatch) {
  Recipe before, now;
  before.trainer.batch_per_worker = now.trainer.batch_per_worker = 8;
  EXPECT_NO_THROW(CheckResume(before, now));
  now.transport.ranks = 2;
  EXPECT_THROW(CheckResume(before, now), UsageError);
}

}  // namespace
}  // namespace trireme
