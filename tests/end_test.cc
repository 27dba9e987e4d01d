// The ways in which a run may end, and what it leaves then.
#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/text.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

using EndTest = WholeTest;

// The end within an epoch has a line, so that the shortest run has a curve.
TEST_F(EndTest, APartOfAnEpochHasALine) {
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

TEST_F(EndTest, FilesSayWhenWhereAndWhyItEnded) {
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

TEST_F(EndTest, TheTargetEndsTheRun) {
  for (const std::string ranks : {"1", "3"}) {
    Succeed({"train", "--ranks", ranks, "--set", "trainer.target_accuracy=0.9", "--out", ranks});
    EXPECT_LT(Number(ranks, "epochs"), 100);
    EXPECT_GE(Number(ranks, "test_accuracy"), 0.9);
  }
  Succeed({"train", "--ranks", "3", "--strategy", "easgd", "--set", "trainer.target_accuracy=0.9",
           "--out", "centre"});
  EXPECT_LT(Number("centre", "epochs"), 100);
}

TEST_F(EndTest, PatienceEndsTheRun) {
  const Words words = {"train", "--set", "trainer.patience=2", "--set", "trainer.evaluate_every=1",
                       "--lr",  "1e-9"};
  for (const std::string ranks : {"1", "2"}) {
    Succeed(words + Words{"--ranks", ranks, "--out", ranks});
    EXPECT_EQ(Number(ranks, "epochs"), 3) << ranks;  // the first is the best
  }
}

// However the ranks agree, the best evaluation has a checkpoint, though none was due, and a run
// without patience keeps it beside the last one.
TEST_F(EndTest, TheBestIsKeptAndPatienceReturnsToIt) {
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
      EXPECT_NE(outcome.out.find("; the run keeps epoch " +
                                 std::to_string(int(Number(run, "best_epoch")))),
                std::string::npos)
          << outcome.out;
      Succeed({"train", "--init", run, "--lr", "1e-30", "--steps", "1", "--out", run + "-again"});
      EXPECT_EQ(Hash(run + "-again"), Hash(run));
    }
  }
}

// Validation samples decide; the test samples only report.
TEST_F(EndTest, TheValidationPartDecides) {
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

TEST_F(EndTest, WithoutCheckpointsInsideTheRunOnlyTheLastIsThere) {
  Succeed({"train", "--epochs", "6", "--set", "trainer.evaluate_every=1", "--set",
           "trainer.checkpoint_epochs=0", "--set", "trainer.keep=9", "--out", "a"});
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(At("a/checkpoints"))) {
    folders += !entry.is_symlink();
  }
  EXPECT_EQ(folders, 1);
  Refuse({"eval", "a", "--checkpoint", "15"}, 2, {"--checkpoint 15", "of steps 90"});
  Write("x.csv", "5.1,3.5,1.4,0.2\n");
  Refuse({"predict", "a", "x.csv", "--checkpoint", "15"}, 2, {"--checkpoint 15", "of steps 90"});
  Succeed({"predict", "a", "x.csv", "--checkpoint", "90"});
}

TEST_F(EndTest, DivergenceEndsWithAMessage) {
  const Words words = {"train", "--lr", "1e30", "--quiet"};
  Refuse(words + Words{"--out", "a"}, 1,
         {"has not been finite since step", "optimizer.lr", "trainer.clip"});
  Refuse(words + Words{"--out", "b", "--ranks", "3"}, 1,
         {"has not been finite since step", "optimizer.lr"});
  const Outcome served = Run(words + Words{"--out", "c", "--ranks", "3", "--strategy", "easgd"});
  EXPECT_EQ(served.exit_code, 1);
  EXPECT_NE(served.err.find("refused a push from client"), std::string::npos) << served.err;
  EXPECT_NE(served.err.find("not finite; lower optimizer.lr"), std::string::npos) << served.err;
  // However short, it is no success.
  Refuse(words + Words{"--out", "d", "--steps", "30"}, 1,
         {"not been finite since step", "optimizer.lr"});
  EXPECT_FALSE(IsDone("d"));
  EXPECT_FALSE(Exists(At("d/checkpoints/latest")));
  // Only the test samples show it: the running statistics of batch-norm are too large.
  Refuse({"train", "--data", "synthetic:28x28x1:10:100", "--model", "cnn", "--lr", "1e4",
          "--epochs", "2", "--quiet", "--out", "e"},
         1, {"finite", "optimizer.lr"});
  EXPECT_FALSE(IsDone("e"));
  // The loss is finite, and its update breaks the weights.
  std::string rows;
  for (int i = 0; i < 20; ++i) {
    rows += fmt::format("{}1000000,{}\n", i % 2 ? "" : "-", i / 2 % 2 ? "a" : "b");
  }
  Write("huge.csv", rows);
  Refuse({"train", "--data", "csv:huge.csv", "--model", "mlp:1-2", "--set", "data.normalize=none",
          "--optimizer", "sgd", "--lr", "3e38", "--steps", "1", "--quiet", "--out", "f"},
         1, {"weight is not finite after step 1", "optimizer.lr"});
  EXPECT_FALSE(Exists(At("f/checkpoints/latest")));
}

TEST_F(EndTest, ASignalSavesNothingOfADivergedRun) {
  // So slow that its epoch does not end before the signal.
  const auto running = Start({"train", "--lr", "1e30", "--set", "emulate.slow=0:1000", "--set",
                              "trainer.metrics_steps=1", "--quiet", "--out", "a"});
  const auto diverged = [&] {
    return Exists(At("a/metrics.jsonl")) &&
           Read("a/metrics.jsonl").find("null") != std::string::npos;
  };
  while (!diverged() && !running->Over()) SleepFor(0.01);
  running->Kill(SIGTERM);
  EXPECT_EQ(running->Wait(kTimeout).exit_code, 143);
  EXPECT_FALSE(Exists(At("a/checkpoints/latest")));
}

// What was good stays, whatever trainer.keep says, and another rate goes on from there.
TEST_F(EndTest, DivergenceLeavesTheGoodCheckpoints) {
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
    EXPECT_NE(outcome.err.find("finite"), std::string::npos) << outcome.err;
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

TEST_F(EndTest, ARunWhoseFolderIsGoneEndsAndWritesNothingElsewhere) {
  const Words words = {"train",
                       "--epochs",
                       "1000000",
                       "--set",
                       "trainer.checkpoint_epochs=20",
                       "--set",
                       "record.tensorboard=true",
                       "--quiet"};
  const Words ways[] = {{},
                        {"--ranks", "2", "--transport", "shm"},
                        {"--ranks", "3", "--strategy", "easgd", "--transport", "shm"}};
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

}  // namespace
}  // namespace trireme::whole
