// What a run leaves behind, and the ways in which it may end.
#include <csignal>
#include <filesystem>

#include "base/text.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

using TrainTest = WholeTest;

TEST_F(TrainTest, WithoutAnyWordsTrainsIris) {
  Succeed({"train", "--out", "a"});
  for (const char* name : {"config.toml", "metrics.jsonl", "summary.json", "checkpoints/latest"}) {
    EXPECT_TRUE(Exists(At(std::string("a/") + name))) << name;
  }
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    EXPECT_TRUE(Exists(At(Latest("a") + "/" + name))) << name;
  }
  EXPECT_GT(Number("a", "test_accuracy"), 0.85);
  EXPECT_GT(Number("a", "samples_per_second"), 0);
  EXPECT_EQ(Number("a", "epochs"), 100);
  EXPECT_EQ(Number("a", "steps"), 1500);
  EXPECT_EQ(Summary("a").At("classes").Items().size(), 3u);
  EXPECT_EQ(Summary("a").At("confusion").Items().size(), 3u);
  ASSERT_EQ(Epochs("a").size(), 100u);
  const Json epoch = Epochs("a")[5];
  double measured = 0;
  for (const auto& [name, seconds] : epoch.At("times").Members()) measured += seconds.AsDouble();
  EXPECT_GT(measured, 0);
  EXPECT_LE(measured, (1 + 1e-9) * epoch.At("seconds").AsDouble());
}

// Whoever names data or a model follows no recipe, by whatever flag.
TEST_F(TrainTest, FlagsAndKeysMeanTheSame) {
  const auto config = [&](const Words& words) {
    static int number = 0;
    const std::string run = "c" + std::to_string(number++);
    Succeed(Words{"train", "--steps", "2", "--out", run} + words);
    return Read(run + "/config.toml");
  };
  const std::string none = config({"--data", "iris"});
  EXPECT_EQ(none, config({"--set", "data.source=iris"}));
  EXPECT_EQ(none, config({"--model", "mlp"}));
  EXPECT_EQ(none, config({"--set", "model.name=mlp"}));
  for (const char* part : {"name = \"mlp\"", "lr = 0.02", "schedule = \"cosine\"", "batch = 32"}) {
    EXPECT_NE(none.find(part), none.npos) << part;
  }
  EXPECT_NE(config({}), none);
  EXPECT_EQ(config({}), config({"iris"}));
  EXPECT_NE(config({"--data", "iris", "--optimizer", "adam"}).find("lr = 0.001"), none.npos);
  EXPECT_NE(config({"iris", "--optimizer", "adam"}).find("lr = 0.02"), none.npos);
}

TEST_F(TrainTest, WhatNobodySaysIsChosenForTheDataAndLearns) {
  const Outcome run =
      Succeed({"train", "--data", "synthetic:8x8x1:5:1000", "--epochs", "3", "--out", "a"});
  EXPECT_NE(run.err.find("no recipe: cnn for small pictures, sgd at 0.02, cosine"), run.err.npos)
      << run.err;
  EXPECT_EQ(run.err.find("learned nothing"), run.err.npos) << run.err;
  EXPECT_GT(Number("a", "test_accuracy"), 0.9);
  Succeed({"train", "a/config.toml", "--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
  const Outcome plan = Succeed({"train", "--data", "iris", "--dry-run"});
  EXPECT_NE(plan.out.find("model mlp, sgd at 0.02, cosine"), plan.out.npos) << plan.out;
}

TEST_F(TrainTest, ANetworkThatHasLearnedNothingIsTold) {
  const Words words = {"train",   "--data",   "synthetic:8x8x1:5:500",
                       "--model", "mlp",      "--lr",
                       "1e-9",    "--epochs", "2"};
  const Words ways[] = {{},
                        {"--json"},
                        {"--ranks", "3", "--strategy", "easgd"},
                        {"--ranks", "2", "--transport", "shm"}};
  int number = 0;
  for (const Words& way : ways) {
    const std::string said =
        Succeed(words + way + Words{"--out", "r" + std::to_string(number++)}).err;
    const size_t at = said.find("the network has learned nothing: the training loss ");
    ASSERT_NE(at, said.npos) << said;
    EXPECT_EQ(said.find("learned nothing", at + 30), said.npos) << said;
    EXPECT_NE(said.find("try --lr 0.02"), said.npos) << said;
  }
}

TEST_F(TrainTest, WhatAnOptimizerDoesNotUseIsTold) {
  const std::string said = Succeed({"train", "--optimizer", "adam", "--set",
                                    "optimizer.nesterov=true", "--steps", "2", "--out", "a"})
                               .err;
  EXPECT_NE(said.find("adam does not use optimizer.nesterov"), said.npos) << said;
  EXPECT_NE(said.find("0.02 is much for adam"), said.npos) << said;
}

TEST_F(TrainTest, AFolderNamedLikeARecipeIsNotTakenForIt) {
  std::filesystem::create_directory(At("iris"));
  Succeed({"train", "--steps", "5", "--out", "iris/a"});
  Succeed({"train", "iris", "--steps", "5", "--out", "iris/b"});
  Refuse({"train", "./iris"}, 2, {"./iris", "directory"});
}

TEST_F(TrainTest, LinesOfStepsSayWhereTheirTimeWent) {
  Succeed({"train", "--ranks", "2", "--steps", "60", "--set", "trainer.metrics_steps=20", "--out",
           "a"});
  const std::string all = Read("a/metrics.jsonl");
  int lines = 0;
  for (const std::string& text : Split(all, '\n')) {
    if (text.find("\"event\":\"step\"") == text.npos) continue;
    ++lines;
    const Json line = ParseJson(text, "metrics.jsonl");
    EXPECT_GT(line.At("times").At("forward").AsDouble(), 0);
    EXPECT_LT(line.At("times").At("forward").AsDouble(), line.At("seconds").AsDouble());
    EXPECT_GT(line.At("bytes_sent").AsInt(), 0);
  }
  EXPECT_EQ(lines, 3);
}

// Evaluations take most of this run, and none of the time of its steps.
TEST_F(TrainTest, LinesOfStepsLeaveOutEvaluations) {
  Succeed({"train", "--data", "synthetic:8x8x1:5:2000", "--model", "mlp:64-32-5", "--set",
           "data.limit=50", "--batch", "10", "--epochs", "30", "--set", "trainer.metrics_steps=5",
           "--set", "trainer.checkpoint_epochs=0", "--out", "a"});
  double evaluating = 0, stepping = 0, first = -1, last = 0;
  for (const std::string& text : Split(std::string(Trim(Read("a/metrics.jsonl"))), '\n')) {
    const Json line = ParseJson(text, "metrics.jsonl");
    if (line.At("event").AsString() == "epoch") {
      evaluating += line.At("evaluation_seconds").AsDouble();
      continue;
    }
    last = line.At("time").AsDouble();
    if (first < 0) {
      first = last;  // its seconds are those of the start, too
    } else {
      stepping += line.At("seconds").AsDouble();
    }
  }
  EXPECT_LT(stepping, last - first + evaluating / 2);
}

TEST_F(TrainTest, TheConfigRepeatsTheRun) {
  Succeed({"train", "--out", "a", "--seed", "3", "--lr", "0.0123", "--optimizer", "adamw",
           "--ranks", "2", "--threads", "2", "--epochs", "7.3"});
  Succeed({"train", "a/config.toml", "--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
  EXPECT_EQ(Read("a/config.toml"), Read("b/config.toml"));
}

TEST_F(TrainTest, TheConfigRepeatsARunWithABatchForEachWorker) {
  Succeed({"train", "--set", "trainer.batch_per_worker=6", "--ranks", "2", "--out", "a"});
  EXPECT_EQ(Number("a", "steps"), 1000);  // 120 samples, 2 * 6 a step
  Succeed({"train", "a/config.toml", "--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
  Succeed({"train", "a/config.toml", "--batch", "30", "--steps", "3", "--out", "c"});
  EXPECT_NE(Read("c/config.toml").find("batch_per_worker = 0"), std::string::npos);
}

TEST_F(TrainTest, AnotherSeedIsAnotherRun) {
  Succeed({"train", "--steps", "5", "--out", "a"});
  Succeed({"train", "--steps", "5", "--out", "b", "--seed", "1"});
  EXPECT_NE(Hash("a"), Hash("b"));
}

TEST_F(TrainTest, WithoutOutTheRunHasAFolderOfItsOwn) {
  Succeed({"train", "--steps", "1"});
  Succeed({"train", "--steps", "1"});
  Refuse({"train", "--out", "runs"}, 2, {"runs", "not empty", "--out"});
}

TEST_F(TrainTest, BatchesOfAnySize) {
  struct Case {
    Words words;
    double steps;
  };
  const Case cases[] = {
      {{"--batch", "full"}, 3},
      {{"--batch", "1"}, 360},
      {{"--batch", "7"}, 54},
      {{"--batch", "100000"}, 3},
      {{"--batch", "full", "--ranks", "4"}, 3},
      {{"--batch", "1", "--ranks", "3"}, 360},
      {{"--set", "data.limit=10", "--batch", "4"}, 9},
      {{"--set", "data.limit=3", "--ranks", "7"}, 3},
      {{"--set", "trainer.shards=2", "--ranks", "5"}, 45},
      {{"--set", "trainer.accumulate=3", "--ranks", "2"}, 45},
      {{"--shuffle", "off"}, 45},
  };
  int number = 0;
  for (const Case& c : cases) {
    const std::string run = "r" + std::to_string(number++);
    Succeed(Words{"train", "--epochs", "3", "--out", run} + c.words);
    EXPECT_EQ(Number(run, "steps"), c.steps) << c.words[0] << c.words[1];
    EXPECT_EQ(Number(run, "epochs"), 3) << c.words[0] << c.words[1];
  }
}

TEST_F(TrainTest, HalfAnEpoch) {
  Succeed({"train", "--epochs", "0.5", "--out", "a"});
  EXPECT_EQ(Number("a", "steps"), 8);
  EXPECT_EQ(Number("a", "epochs"), 0);
  Succeed({"train", "--epochs", "1.5", "--out", "b"});
  EXPECT_EQ(Number("b", "steps"), 23);
  EXPECT_EQ(Number("b", "epochs"), 1);
}

// The end within an epoch has a line, so that the shortest run has a curve.
TEST_F(TrainTest, APartOfAnEpochHasALine) {
  for (const std::string strategy : {"allreduce", "easgd"}) {
    const std::string& run = strategy;
    const Outcome outcome =
        Succeed({"train", "--steps", "18", "--ranks", "3", "--strategy", strategy, "--out", run});
    const auto lines = Epochs(run);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[1].At("step").AsInt(), 18);
    EXPECT_DOUBLE_EQ(lines[1].At("epoch").AsDouble(), 1.2);
    EXPECT_EQ(lines[1].At("samples").AsInt(), 144);
    EXPECT_EQ(lines[1].At("test_accuracy").AsDouble(), Number(run, "test_accuracy"));
    EXPECT_TRUE(lines[1].Find("train_loss"));
    EXPECT_NE(outcome.out.find("done: 1.2 epochs, 18 steps"), std::string::npos) << outcome.out;
    // It was the end: a run that goes on has none.
    Succeed({"train", "--resume", run, "--steps", "30"});
    ASSERT_EQ(Epochs(run).size(), 2u);
    EXPECT_EQ(Epochs(run)[1].At("epoch").AsInt(), 2);
  }
}

TEST_F(TrainTest, FilesSayWhenWhereAndWhyItEnded) {
  Succeed({"train", "--steps", "3", "--out", "a"});
  Succeed({"train", "--resume", "a", "--steps", "4"});
  const auto starts = Split(std::string(Trim(Read("a/starts.jsonl"))), '\n');
  ASSERT_EQ(starts.size(), 2u);
  const Json first = ParseJson(starts[0], "first"), second = ParseJson(starts[1], "second");
  EXPECT_EQ(Summary("a").At("started_at").AsString(), first.At("started_at").AsString());
  EXPECT_LT(first.At("started_at").AsString(), second.At("started_at").AsString());
  EXPECT_LE(second.At("started_at").AsString(), Summary("a").At("ended_at").AsString());
  EXPECT_EQ(first.At("host").AsString(), Summary("a").At("host").AsString());
  EXPECT_EQ(Summary("a").At("end_reason").AsString(), "done");

  for (const std::string strategy : {"allreduce", "easgd"}) {
    const auto running =
        Start({"train", "--epochs", "1000000", "--set", "trainer.checkpoint_epochs=20", "--quiet",
               "--ranks", "2", "--strategy", strategy, "--out", strategy});
    ASSERT_TRUE(AwaitStep(*running, strategy, 300));
    running->Kill(SIGTERM);
    EXPECT_EQ(running->Wait(kTimeout).exit_code, 143);
    const auto lines = Split(std::string(Trim(Read(strategy + "/starts.jsonl"))), '\n');
    ASSERT_EQ(lines.size(), 2u);
    const Json end = ParseJson(lines[1], "end").At("end");
    EXPECT_EQ(end.At("reason").AsString(), "signal");
    EXPECT_EQ(end.At("signal").AsInt(), SIGTERM);
    EXPECT_GE(end.At("step").AsInt(), 300);
    EXPECT_GT(end.At("at").AsString(), ParseJson(lines[0], "start").At("started_at").AsString());
    EXPECT_NE(Succeed({"report", strategy, "--out", strategy + ".html"}).out, "");
  }
}

TEST_F(TrainTest, TheTargetEndsTheRun) {
  for (const std::string ranks : {"1", "3"}) {
    Succeed({"train", "--ranks", ranks, "--set", "trainer.target_accuracy=0.9", "--out", ranks});
    EXPECT_LT(Number(ranks, "epochs"), 100);
    EXPECT_GE(Number(ranks, "test_accuracy"), 0.9);
  }
  Succeed({"train", "--ranks", "3", "--strategy", "easgd", "--set", "trainer.target_accuracy=0.9",
           "--out", "centre"});
  EXPECT_LT(Number("centre", "epochs"), 100);
}

TEST_F(TrainTest, PatienceEndsTheRun) {
  const Words words = {"train", "--set", "trainer.patience=2", "--set", "trainer.evaluate_every=1",
                       "--lr",  "1e-9"};
  for (const std::string ranks : {"1", "2"}) {
    Succeed(words + Words{"--ranks", ranks, "--out", ranks});
    EXPECT_EQ(Number(ranks, "epochs"), 3) << ranks;  // the first is the best
  }
}

// However the ranks agree, the best evaluation has a checkpoint, though none was due, and a run
// without patience keeps it beside the last one.
TEST_F(TrainTest, TheBestIsKeptAndPatienceReturnsToIt) {
  const Words words = {"train",
                       "--lr",
                       "0.3",
                       "--set",
                       "trainer.evaluate_every=1",
                       "--set",
                       "trainer.checkpoint_epochs=7",
                       "--set",
                       "trainer.keep=1"};
  const Words ways[] = {{},
                        {"--ranks", "2", "--transport", "shm"},
                        {"--ranks", "3", "--strategy", "sync-ps"},
                        {"--ranks", "3", "--strategy", "easgd"},
                        {"--ranks", "2", "--strategy", "local-sgd"},
                        {"--ranks", "2", "--strategy", "hogwild"}};
  int number = 0;
  for (const Words& way : ways) {
    for (const std::string patience : {"0", "3"}) {
      const std::string run = "r" + std::to_string(number++);
      SCOPED_TRACE(way.empty() ? "alone" : way.back());
      const Outcome outcome = Succeed(words + way +
                                      Words{"--set", "trainer.patience=" + patience, "--out", run,
                                            "--epochs", patience == "0" ? "9" : "100"});
      const bool returned = patience != "0";
      // With a server, workers go on until its decision reaches them.
      auto epochs = Epochs(run);
      if (returned) epochs.resize(size_t(Number(run, "best_epoch")) + 3);
      double best = -1;
      for (const Json& epoch : epochs) {
        best = std::max(best, epoch.At("test_accuracy").AsDouble());
      }
      EXPECT_EQ(Number(run, "best_accuracy"), best);
      EXPECT_EQ(epochs[size_t(Number(run, "best_epoch")) - 1].At("test_accuracy").AsDouble(), best);
      EXPECT_EQ(Summary(run).At("end_reason").AsString(), returned ? "patience" : "done");
      const Json kept =
          ParseJson(Succeed({"eval", run, "--checkpoint", "best", "--json"}).out, "eval");
      if (way.empty() || way.back() != "local-sgd") {  // which saves when its workers meet
        EXPECT_EQ(kept.At("test_accuracy").AsDouble(), best);
      }
      if (!returned) continue;
      EXPECT_EQ(Number(run, "test_accuracy"), kept.At("test_accuracy").AsDouble());
      EXPECT_LT(Number(run, "best_epoch"), Number(run, "epochs"));
      EXPECT_NE(outcome.out.find("; the run holds epoch " +
                                 std::to_string(int(Number(run, "best_epoch")))),
                std::string::npos)
          << outcome.out;
      Succeed({"train", "--init", run, "--lr", "1e-30", "--steps", "1", "--out", run + "-again"});
      EXPECT_EQ(Hash(run + "-again"), Hash(run));
    }
  }
}

// Validation samples decide; the test samples only report.
TEST_F(TrainTest, TheValidationPartDecides) {
  for (const std::string strategy : {"allreduce", "easgd"}) {
    const std::string& run = strategy;
    const Outcome outcome =
        Succeed({"train", "--lr", "0.3", "--epochs", "100", "--ranks", "2", "--strategy", strategy,
                 "--set", "data.validation_fraction=0.25", "--set", "trainer.evaluate_every=1",
                 "--set", "trainer.patience=3", "--out", run});
    auto epochs = Epochs(run);
    epochs.resize(size_t(Number(run, "best_epoch")) + 3);
    double best = -1;
    for (const Json& epoch : epochs) {
      EXPECT_TRUE(epoch.Find("validation_loss"));
      best = std::max(best, epoch.At("validation_accuracy").AsDouble());
    }
    EXPECT_EQ(Number(run, "best_accuracy"), best);
    EXPECT_EQ(Number(run, "validation_accuracy"), best);
    EXPECT_EQ(Number(run, "test_accuracy"),
              epochs[size_t(Number(run, "best_epoch")) - 1].At("test_accuracy").AsDouble());
    EXPECT_NE(outcome.out.find("; validation "), std::string::npos) << outcome.out;
  }
}

TEST_F(TrainTest, WithoutCheckpointsInsideTheRunOnlyTheLastIsThere) {
  Succeed({"train", "--epochs", "6", "--set", "trainer.evaluate_every=1", "--set",
           "trainer.checkpoint_epochs=0", "--set", "trainer.keep=9", "--out", "a"});
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(At("a/checkpoints"))) {
    folders += !entry.is_symlink();
  }
  EXPECT_EQ(folders, 1);
  Refuse({"eval", "a", "--checkpoint", "15"}, 2, {"--checkpoint 15", "of steps 90"});
}

TEST_F(TrainTest, DivergenceEndsWithAMessage) {
  const Words words = {"train", "--lr", "1e30", "--quiet"};
  Refuse(words + Words{"--out", "a"}, 1, {"not finite", "optimizer.lr", "trainer.clip"});
  Refuse(words + Words{"--out", "b", "--ranks", "3"}, 1, {"not finite", "optimizer.lr"});
  const Outcome served = Run(words + Words{"--out", "c", "--ranks", "3", "--strategy", "easgd"});
  EXPECT_EQ(served.exit_code, 1);
  EXPECT_NE(served.err.find("refused a push of client"), std::string::npos) << served.err;
  EXPECT_NE(served.err.find("not finite (lower optimizer.lr"), std::string::npos) << served.err;
  // However short, it is no success.
  Refuse(words + Words{"--out", "d", "--steps", "30"}, 1,
         {"not finite since step", "optimizer.lr"});
  EXPECT_FALSE(IsDone("d"));
  EXPECT_FALSE(Exists(At("d/checkpoints/latest")));
  // Only the test samples show it: the running statistics of batch-norm are too large.
  Refuse({"train", "--data", "synthetic:28x28x1:10:100", "--model", "cnn", "--lr", "1e4",
          "--epochs", "2", "--quiet", "--out", "e"},
         1, {"not finite", "optimizer.lr"});
  EXPECT_FALSE(IsDone("e"));
}

// What was good stays, whatever trainer.keep says, and another rate goes on from there.
TEST_F(TrainTest, DivergenceLeavesTheGoodCheckpoints) {
  const Words words = {
      "train",  "--set", "trainer.checkpoint_epochs=1", "--set", "trainer.evaluate_every=1",
      "--quiet"};
  const Words ways[] = {{}, {"--ranks", "2"}, {"--ranks", "3", "--strategy", "easgd"}};
  int number = 0;
  for (const Words& way : ways) {
    const std::string run = "r" + std::to_string(number++);
    Succeed(words + way + Words{"--epochs", "20", "--out", run});
    const std::string latest = Latest(run);
    const std::string before = Succeed({"eval", run}).out;
    const Outcome outcome =
        Run({"train", "--resume", run, "--epochs", "40", "--lr", "1e30", "--quiet"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find("not finite"), std::string::npos) << outcome.err;
    for (const std::string which : {"last", "best"}) {
      const Json now =
          ParseJson(Succeed({"eval", run, "--checkpoint", which, "--json"}).out, "eval");
      EXPECT_GT(now.At("test_accuracy").AsDouble(), 0.6) << which;
      EXPECT_FALSE(now.At("test_loss").IsNull()) << which;
    }
    if (way.size() < 3) {  // a server may have gone on for a while
      EXPECT_EQ(Latest(run), latest);
      EXPECT_EQ(Succeed({"eval", run}).out, before);
    }
    Succeed({"train", "--resume", run, "--epochs", "40", "--lr", "0.01", "--quiet"});
    EXPECT_EQ(Number(run, "epochs"), 40);
  }
}

TEST_F(TrainTest, ARunWhoseFolderIsGoneEndsAndWritesNothingElsewhere) {
  const Words words = {"train",
                       "--epochs",
                       "1000000",
                       "--set",
                       "trainer.checkpoint_epochs=20",
                       "--set",
                       "record.tensorboard=true",
                       "--quiet"};
  const Words ways[] = {
      {}, {"--ranks", "2", "--transport", "shm"}, {"--ranks", "3", "--strategy", "easgd"}};
  int number = 0;
  for (const Words& way : ways) {
    const std::string run = "r" + std::to_string(number++);
    for (const bool moved : {true, false}) {
      SCOPED_TRACE(run + (moved ? " moved" : " removed"));
      const auto running = Start(words + way + Words{"--out", run});
      ASSERT_TRUE(AwaitStep(*running, run, 600));
      std::filesystem::rename(At(run), At(run + "-moved"));
      if (!moved) std::filesystem::remove_all(At(run + "-moved"));
      const Outcome outcome = running->Wait(kTimeout);
      EXPECT_EQ(outcome.exit_code, 1);
      EXPECT_NE(outcome.err.find(run + ": the run's folder was removed, moved or replaced"),
                std::string::npos)
          << outcome.err;
      EXPECT_FALSE(Exists(At(run)));
      if (!moved) continue;
      Succeed({"eval", run + "-moved"});
      std::filesystem::remove_all(At(run + "-moved"));
    }
  }
}

TEST_F(TrainTest, EasgdLearnsIrisAndCountsEveryEpoch) {
  for (const std::string ranks : {"2", "3", "5"}) {
    Succeed({"train", "--ranks", ranks, "--strategy", "easgd", "--out", ranks});
    EXPECT_GT(Number(ranks, "test_accuracy"), 0.85);
    EXPECT_EQ(Number(ranks, "epochs"), 100);
    EXPECT_EQ(Number(ranks, "steps"), 1500);
    const auto epochs = Epochs(ranks);
    ASSERT_EQ(epochs.size(), 100u);
    for (size_t i = 0; i < epochs.size(); ++i) {
      EXPECT_EQ(epochs[i].At("epoch").AsInt(), int64_t(i + 1));
      EXPECT_EQ(epochs[i].At("step").AsInt(), int64_t(15 * (i + 1)));
    }
    EXPECT_NE(Latest(ranks).find("step-00001500"), std::string::npos);
  }
}

TEST_F(TrainTest, EasgdWithMoreWorkersThanWork) {
  // The rank that records may get nothing to do: the run counts all the same.
  Succeed({"train", "--ranks", "9", "--strategy", "easgd", "--set", "data.limit=5", "--epochs",
           "40", "--out", "a"});
  EXPECT_EQ(Number("a", "steps"), 40);
  EXPECT_EQ(Number("a", "epochs"), 40);
  const Json evaluated = ParseJson(Succeed({"eval", "a", "--json"}).out, "eval");
  EXPECT_NEAR(evaluated.At("test_loss").AsDouble(), Number("a", "test_loss"), 1e-6);
}

TEST_F(TrainTest, TellsTheStoryAsLinesOrJson) {
  EXPECT_EQ(Succeed({"train", "--quiet", "--epochs", "2", "--out", "q"}).err, "");
  const std::string text = Succeed({"train", "--json", "--epochs", "2", "--out", "j"}).out;
  int lines = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    EXPECT_TRUE(ParseJson(text.substr(begin, end - begin), "line").IsObject());
    ++lines;
  }
  EXPECT_GE(lines, 2);
}

TEST_F(TrainTest, PeakMemoryIsItsOwnAndNotThatOfWhoStartedIt) {
  constexpr size_t kFat = size_t{700} << 20;
  const std::vector<char> fat(kFat, 1);
  Succeed({"train", "--epochs", "2", "--quiet", "--out", "a"});
  EXPECT_EQ(fat[kFat / 2], 1);
  EXPECT_GT(Number("a", "peak_memory_bytes"), 1e6);
  EXPECT_LT(Number("a", "peak_memory_bytes"), double(kFat));
}

TEST_F(TrainTest, APlanNeedsNoMemoryForTheWeights) {
  const Outcome plan = Succeed({"train", "--data", "synthetic:8192x8192x3:10:10", "--model", "mlp",
                                "--set", "data.normalize=none", "--batch", "1", "--dry-run"});
  EXPECT_NE(plan.out.find("in all, besides program and data set"), std::string::npos) << plan.out;
}

TEST_F(TrainTest, ADryRunLeavesNothing) {
  const Outcome plan = Succeed({"train", "fashion-cnn", "--data", "synthetic:28x28x1:10:100",
                                "--ranks", "2", "--dry-run", "--out", "a"});
  EXPECT_NE(plan.out.find("shards"), std::string::npos);
  EXPECT_FALSE(Exists(At("a")));
  EXPECT_FALSE(Exists(At("runs")));
}

}  // namespace
}  // namespace trireme::whole
