// A run that was stopped and goes on is the run that was never stopped.
#include <fmt/format.h>

#include <filesystem>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

const Words kIris = {"train", "--set", "optimizer.schedule=constant"};  // 15 steps an epoch
const Words kCnn = {"train",
                    "--model",
                    "cnn",
                    "--data",
                    "synthetic:28x28x1:10:200",
                    "--batch",
                    "16",
                    "--lr",
                    "0.05",
                    "--set",
                    "optimizer.schedule=constant",
                    "--set",
                    "model.dropout=0.2",
                    "--set",
                    "trainer.shards=4"};

class ResumeTest : public WholeTest {
 protected:
  // Stopped after `first` steps, then to `all` with the flags `later`; compared with a run that was
  // not stopped.
  void Check(const Words& words, int first, int all, const Words& later = {}) {
    Succeed(words + Words{"--steps", std::to_string(all), "--out", "whole"});
    Succeed(words + Words{"--steps", std::to_string(first), "--out", "parts"});
    Succeed(Words{"train", "--resume", "parts", "--steps", std::to_string(all)} + later);
    EXPECT_EQ(Hash("parts"), Hash("whole"));
    EXPECT_EQ(Number("parts", "steps"), all);
    EXPECT_EQ(Number("parts", "epochs"), Number("whole", "epochs"));
    EXPECT_EQ(Number("parts", "train_loss"), Number("whole", "train_loss"));
    ExpectSameEpochs();
  }

  void ExpectSameEpochs() {
    const auto parts = Epochs("parts"), whole = Epochs("whole");
    ASSERT_EQ(parts.size(), whole.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      for (const char* key : {"epoch", "step", "train_loss", "train_accuracy", "lr"}) {
        EXPECT_EQ(parts[i].At(key).AsDouble(), whole[i].At(key).AsDouble()) << key << " of " << i;
      }
    }
  }
};

TEST_F(ResumeTest, MomentumInTheMiddleOfAnEpoch) { Check(kIris, 37, 70); }
TEST_F(ResumeTest, AtTheEndOfAnEpoch) { Check(kIris, 30, 60); }
TEST_F(ResumeTest, AtTheLastStepOfAnEpochButOne) { Check(kIris, 29, 61); }
TEST_F(ResumeTest, Adam) { Check(kIris + Words{"--optimizer", "adam", "--lr", "0.01"}, 37, 70); }
TEST_F(ResumeTest, AdamW) { Check(kIris + Words{"--optimizer", "adamw", "--lr", "0.01"}, 8, 23); }
TEST_F(ResumeTest, Adagrad) { Check(kIris + Words{"--optimizer", "adagrad"}, 37, 70); }
TEST_F(ResumeTest, Lars) { Check(kIris + Words{"--optimizer", "lars"}, 37, 70); }
TEST_F(ResumeTest, Lamb) { Check(kIris + Words{"--optimizer", "lamb"}, 8, 23); }
TEST_F(ResumeTest, OnSeveralRanks) { Check(kIris + Words{"--ranks", "3"}, 37, 70); }
TEST_F(ResumeTest, CnnWithBatchNormAndDropout) { Check(kCnn, 7, 16); }

TEST_F(ResumeTest, CnnOnAnotherNumberOfRanks) {
  Check(kCnn + Words{"--deterministic", "--ranks", "2"}, 7, 16, {"--ranks", "3"});
}

TEST_F(ResumeTest, ACosineThatWasPlannedFromTheStart) {
  Succeed({"train", "--epochs", "6", "--out", "whole"});
  Succeed({"train", "--epochs", "6", "--out", "parts", "--set", "trainer.checkpoint_steps=40",
           "--set", "trainer.keep=100"});
  // As if it had been killed: what came after step 40 is gone.
  std::filesystem::remove_all(At(Latest("parts")));
  std::filesystem::remove(At("parts/summary.json"));
  std::filesystem::remove_all(At("parts/checkpoints/step-00000080"));
  Succeed({"train", "--resume", "parts"});
  EXPECT_EQ(Hash("parts"), Hash("whole"));
  ExpectSameEpochs();
}

TEST_F(ResumeTest, ARunWithoutCheckpointBeginsAnew) {
  Succeed({"train", "--out", "whole", "--epochs", "4"});
  Succeed({"train", "--out", "parts", "--epochs", "4"});
  std::filesystem::remove_all(At("parts/checkpoints"));
  std::filesystem::remove(At("parts/summary.json"));
  const Outcome outcome = Succeed({"train", "--resume", "parts"});
  EXPECT_NE(outcome.err.find("parts has no checkpoint; starting at epoch 1"), std::string::npos);
  EXPECT_EQ(Hash("parts"), Hash("whole"));
  ExpectSameEpochs();
}

TEST_F(ResumeTest, AFinishedRunStaysWhatItIs) {
  Succeed({"train", "--out", "a", "--epochs", "4"});
  const std::string summary = Read("a/summary.json"), starts = Read("a/starts.jsonl");
  const std::string metrics = Read("a/metrics.jsonl");
  const std::string hash = Hash("a"), latest = Latest("a");
  const double accuracy = Number("a", "test_accuracy");
  EXPECT_EQ(Succeed({"train", "--resume", "a"}).out,
            "a is already done (4 epochs, 60 steps); use --epochs N to train further\n");
  EXPECT_EQ(Succeed({"train", "--resume", "a", "--quiet"}).out, "");
  Refuse({"train", "--resume", "a", "--epochs", "2"}, 2, {"has already done 60 steps"});
  EXPECT_EQ(Read("a/summary.json"), summary);
  EXPECT_EQ(Read("a/starts.jsonl"), starts);
  EXPECT_EQ(Read("a/metrics.jsonl"), metrics);
  // Without its summary it is evaluated again.
  std::filesystem::remove(At("a/summary.json"));
  Succeed({"train", "--resume", "a"});
  EXPECT_EQ(Hash("a"), hash);
  EXPECT_EQ(Latest("a"), latest);
  EXPECT_EQ(Number("a", "test_accuracy"), accuracy);
  EXPECT_EQ(Epochs("a").size(), 4u);
}

TEST_F(ResumeTest, ARunThatAnEvaluationEndedGoesOnOnlyIfAsked) {
  const Words words = {"train", "--set", "trainer.evaluate_every=1", "--epochs", "40"};
  Succeed(words + Words{"--lr", "1e-9", "--set", "trainer.patience=2", "--out", "p"});
  EXPECT_EQ(Number("p", "epochs"), 3);
  const std::string hash = Hash("p");
  EXPECT_NE(Succeed({"train", "--resume", "p", "--epochs", "60"}).out.find("p is already done"),
            std::string::npos);
  EXPECT_EQ(Hash("p"), hash);
  Succeed({"train", "--resume", "p", "--set", "trainer.patience=4"});
  EXPECT_EQ(Number("p", "epochs"), 5);  // from the best, epoch 1

  Succeed(words + Words{"--set", "trainer.target_accuracy=0.8", "--out", "t"});
  const double epochs = Number("t", "epochs");
  EXPECT_LT(epochs, 40);
  EXPECT_NE(Succeed({"train", "--resume", "t"}).out.find("target_accuracy = 0.8 is reached"),
            std::string::npos);
  EXPECT_EQ(Number("t", "epochs"), epochs);
  Succeed({"train", "--resume", "t", "--set", "trainer.target_accuracy=0"});
  EXPECT_EQ(Number("t", "epochs"), 40);
}

// Killed between a checkpoint and the switch of `best`; the best of a future that was given up;
// one that is gone.
TEST_F(ResumeTest, TheBestIsWhatTheCheckpointSays) {
  const Words words = {"train", "--set", "trainer.evaluate_every=1", "--set", "trainer.keep=100"};
  Succeed(words + Words{"--epochs", "4", "--out", "a"});
  const auto best = [&] {
    return std::filesystem::read_symlink(At("a/checkpoints/best")).string();
  };
  const std::string right = best();
  const double accuracy = Number("a", "best_accuracy");
  const auto resume = [&](const std::string& epochs) {
    Succeed({"train", "--resume", "a", "--lr", "1e-30", "--epochs", epochs});
  };
  std::filesystem::remove(At("a/checkpoints/best"));
  std::filesystem::create_symlink("step-00000015", At("a/checkpoints/best"));
  resume("5");
  EXPECT_EQ(best(), right);
  EXPECT_EQ(Number("a", "best_accuracy"), accuracy);

  for (const char* later : {"30", "45", "60", "75"}) {
    std::filesystem::remove_all(At("a/checkpoints/step-000000" + std::string(later)));
  }
  resume("6");
  EXPECT_EQ(best(), "step-00000015");
  EXPECT_EQ(Number("a", "best_epoch"), 1);

  std::filesystem::remove_all(At("a/checkpoints/step-00000015"));
  const Outcome outcome = Succeed({"train", "--resume", "a", "--epochs", "8"});
  EXPECT_NE(outcome.err.find("the best checkpoint is lost"), std::string::npos) << outcome.err;
  EXPECT_GE(Number("a", "best_epoch"), 7);
}

TEST_F(ResumeTest, MoreEpochsThanPlanned) {
  Succeed(kIris + Words{"--epochs", "4", "--out", "whole"});
  Succeed(kIris + Words{"--epochs", "2.5", "--out", "parts"});
  Succeed({"train", "--resume", "parts", "--epochs", "4"});
  EXPECT_EQ(Hash("parts"), Hash("whole"));
  ExpectSameEpochs();
}

TEST_F(ResumeTest, EasgdGoesOnAndEnds) {
  Succeed({"train", "--ranks", "3", "--strategy", "easgd", "--steps", "40", "--out", "a"});
  Succeed({"train", "--resume", "a", "--steps", "900"});
  EXPECT_EQ(Number("a", "steps"), 900);
  EXPECT_EQ(Number("a", "epochs"), 60);
  EXPECT_EQ(Epochs("a").size(), 60u);
  EXPECT_GT(Number("a", "test_accuracy"), 0.85);
}

TEST_F(ResumeTest, WhatWouldMakeItAnotherRunIsRefused) {
  Succeed({"train", "--steps", "20", "--out", "a"});
  const std::string config = Read("a/config.toml");
  const Words changes[] = {{"--model", "mlp:4-3"},
                           {"--data", "synthetic:1x1x4:3:100"},
                           {"--seed", "9"},
                           {"--batch", "9"},
                           {"--optimizer", "adam"},
                           {"--strategy", "easgd", "--ranks", "2"},
                           {"--set", "data.limit=50"},
                           {"--set", "data.test_fraction=0.5"},
                           {"--set", "model.norm=layer"}};
  for (const Words& change : changes) {
    Refuse(Words{"train", "--resume", "a"} + change, 2, {"cannot be changed", "--init"});
  }
  EXPECT_EQ(Read("a/config.toml"), config);
}

TEST_F(ResumeTest, WhatOnlySaysHowItGoesOnMayChange) {
  Succeed({"train", "--steps", "20", "--out", "a", "--set", "model.dropout=0.2"});
  Words words = {"train", "--resume", "a", "--steps", "40", "--ranks", "2", "--lr", "0.01"};
  for (const char* change :
       {"model.dropout=0.1", "model.smoothing=0.1", "trainer.shards=2", "engine.winograd=auto",
        "trainer.precision=bf16-or-f32", "optimizer.schedule=cosine"}) {
    words = words + Words{"--set", change};
  }
  Succeed(words);
  Refuse({"train", "--resume", "a", "--set", "data.centre=0.5"}, 2, {"data.centre cannot be"});
  Refuse({"train", "--resume", "a", "--set", "model.dropout=0"}, 2, {"model.dropout (from or to"});
}

TEST_F(ResumeTest, ColumnsInAnotherOrderAreRefused) {
  std::string rows, turned;
  for (int i = 0; i < 12; ++i) {
    rows += fmt::format("{},{},{}\n", i * i % 7, i % 5, i % 2 ? "no" : "yes");
    turned += fmt::format("{},{},{}\n", i % 5, i * i % 7, i % 2 ? "no" : "yes");
  }
  Write("rows.csv", "x,y,kind\n" + rows);
  Succeed({"train", "--data", "csv:" + At("rows.csv"), "--model", "mlp:2-3-2", "--batch", "4",
           "--steps", "4", "--out", "a"});
  Write("rows.csv", "y,x,kind\n" + turned);
  Refuse({"train", "--resume", "a", "--steps", "8"}, 1, {"column \"y\" is where \"x\" was"});
  Write("rows.csv", "x,y,kind\n" + rows);
  Succeed({"train", "--resume", "a", "--steps", "8"});
}

TEST_F(ResumeTest, OtherDataAreRefused) {
  std::string rows;
  for (int i = 0; i < 12; ++i) rows += fmt::format("{},{},{}\n", i, i % 5, i % 2 ? "no" : "yes");
  const auto refuse = [&](const std::string& changed, std::initializer_list<std::string> words) {
    Write("rows.csv", changed);
    Refuse({"train", "--resume", "a", "--steps", "8"}, 1, words);
  };
  Write("rows.csv", rows);
  Succeed({"train", "--data", "csv:" + At("rows.csv"), "--model", "mlp:2-3-2", "--batch", "4",
           "--steps", "4", "--out", "a"});
  refuse(rows + "3,4,no\n", {"differ from those that the run began with", "to train", "--init"});
  std::string other = rows;
  for (size_t at; (at = other.find("yes")) != std::string::npos;) other.replace(at, 3, "aye");
  refuse(other, {"class 0 was \"no\" and is now \"aye\"", "--init"});
  Write("rows.csv", rows);
  Succeed({"train", "--resume", "a", "--steps", "8"});
}

}  // namespace
}  // namespace trireme::whole
