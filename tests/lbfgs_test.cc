// Runs that minimise the loss of all samples at once (trainer/batch_train.h).
#include <csignal>

#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

const Words kIris = {"train", "iris", "--optimizer", "lbfgs", "--threads", "1"};
// Batch-norm: its statistics are those of fixed portions. Weight decay: a penalty.
const Words kNorm = {"train",
                     "--data",
                     "synthetic:8x8x1:5:600",
                     "--model",
                     "mlp:64-24-5",
                     "--set",
                     "model.norm=batch",
                     "--optimizer",
                     "lbfgs",
                     "--set",
                     "optimizer.weight_decay=0.001",
                     "--set",
                     "optimizer.history=4",
                     "--threads",
                     "1",
                     "--quiet"};

// No machine is so slow that it converges before it is stopped.
const Words kEndless = kNorm + Words{"--epochs", "100000", "--set", "emulate.step_ms=200"};

class LbfgsTest : public RanksTest {
 protected:
  std::vector<double> Losses(const std::string& run) const {
    std::vector<double> losses;
    for (const Json& epoch : Epochs(run)) losses.push_back(epoch.At("train_loss").AsDouble());
    return losses;
  }
};

TEST_F(LbfgsTest, TrainsIris) {
  const Outcome outcome = Succeed(kIris + Words{"--epochs", "30", "--out", "a"});
  EXPECT_NE(outcome.err.find("it does not use trainer.batch, optimizer.lr"), std::string::npos)
      << outcome.err;
  EXPECT_GE(Number("a", "test_accuracy"), 0.9);
  const std::vector<double> losses = Losses("a");
  ASSERT_FALSE(losses.empty());
  EXPECT_LT(losses.back(), 0.1);
  for (size_t i = 1; i < losses.size(); ++i) EXPECT_LT(losses[i], losses[i - 1] * (1 + 1e-6));
  for (const Json& epoch : Epochs("a")) EXPECT_GE(epoch.At("evaluations").AsInt(), 1);
}

TEST_F(LbfgsTest, WhatChangesTheFunctionIsRefused) {
  Refuse(kIris + Words{"--set", "model.dropout=0.2"}, 2,
         {"model.dropout = 0.2", "minimises one function", "set model.dropout=0"});
  Refuse({"train", "--data", "synthetic:8x8x1:5:50", "--optimizer", "lbfgs", "--set",
          "data.augment=flip"},
         2, {"data.augment = flip", "minimises one function", "set data.augment=none"});
  Refuse(kIris + Words{"--ranks", "3", "--strategy", "easgd"}, 2,
         {"strategy easgd", "optimizer lbfgs", "use strategy allreduce"});
  Refuse(kIris + Words{"--ranks", "3", "--deterministic"}, 2, {"trainer.deterministic", "lbfgs"});
  Refuse(kNorm + Words{"--self-test"}, 2, {"--self-test", "this optimizer"});
}

TEST_F(LbfgsTest, GoesOnToTheBit) {
  Succeed(kNorm + Words{"--epochs", "9", "--out", "whole"});
  Succeed(kNorm + Words{"--epochs", "4", "--out", "parts"});
  Succeed({"train", "--resume", "parts", "--epochs", "9", "--quiet"});
  EXPECT_EQ(Hash("parts"), Hash("whole"));
  EXPECT_EQ(Losses("parts"), Losses("whole"));
  EXPECT_EQ(Number("parts", "test_loss"), Number("whole", "test_loss"));
  Refuse({"train", "--resume", "parts", "--epochs", "20", "--set", "optimizer.history=5"}, 2,
         {"optimizer.history cannot be changed"});
}

TEST_F(LbfgsTest, AKilledRunGoesOnToTheBit) {
  const Words slow = kEndless + Words{"--out", "parts"};
  auto running = Start(slow);
  ASSERT_TRUE(AwaitStep(*running, "parts", 3)) << running->err();
  running->Kill(SIGKILL);
  running->Wait(kTimeout);
  const std::string epochs = std::to_string(SavedStep("parts") + 2);
  Succeed({"train", "--resume", "parts", "--epochs", epochs, "--quiet"});
  Succeed(kNorm + Words{"--epochs", epochs, "--out", "whole"});
  EXPECT_EQ(Hash("parts"), Hash("whole"));
  EXPECT_EQ(Losses("parts"), Losses("whole"));
}

TEST_F(LbfgsTest, ASignalStopsItAndItGoesOn) {
  auto running = Start(kEndless + Words{"--out", "a"});
  ASSERT_TRUE(AwaitStep(*running, "a", 2)) << running->err();
  running->Kill(SIGTERM);
  EXPECT_EQ(running->Wait(kTimeout).exit_code, 143);
  const std::string epochs = std::to_string(SavedStep("a") + 1);
  Succeed({"train", "--resume", "a", "--epochs", epochs, "--quiet"});
  EXPECT_EQ(int64_t(Epochs("a").size()), std::stoll(epochs));
}

TEST_F(LbfgsTest, WhereNothingIsLowerTheRunEnds) {
  const Outcome outcome =
      Succeed({"train", "--data", "iris", "--model", "mlp:4-3", "--optimizer", "lbfgs", "--set",
               "optimizer.weight_decay=1", "--epochs", "5000", "--out", "a"});
  EXPECT_EQ(Summary("a").At("end_reason").AsString(), "converged");
  EXPECT_NE(outcome.out.find("converged, no step lowers the loss any more"), std::string::npos)
      << outcome.out;
  EXPECT_LT(Number("a", "epochs"), 5000);
  const Outcome again = Succeed({"train", "--resume", "a"});
  EXPECT_NE(again.out.find("no step lowers its loss any more"), std::string::npos) << again.out;
}

class LbfgsRanksTest : public LbfgsTest, public testing::WithParamInterface<Transport> {};

// One rank, and a leader with one, two and four workers.
TEST_P(LbfgsRanksTest, AnyNumberOfWorkersTakesTheSameSteps) {
  Succeed(kNorm + Words{"--epochs", "10", "--out", "alone"});
  const std::vector<double> alone = Losses("alone");
  ASSERT_EQ(alone.size(), 10u);
  for (const int ranks : {2, 3, 5}) {
    const std::string run = "r" + std::to_string(ranks);
    TrainRanks(GetParam(), ranks, kNorm + Words{"--epochs", "10", "--out", run});
    const std::vector<double> losses = Losses(run);
    ASSERT_EQ(losses.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_NEAR(losses[i], alone[i], 1e-4) << ranks << " ranks, epoch " << i + 1;
    }
    EXPECT_NEAR(Number(run, "test_loss"), Number("alone", "test_loss"), 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LbfgsRanksTest, testing::ValuesIn(Transports(StartsItself)),
                         TransportName);

class LbfgsKillTest : public LbfgsTest, public testing::WithParamInterface<Transport> {};

// As in every strategy in step: the job ends, says who it was, and goes on from its checkpoint.
TEST_P(LbfgsKillTest, OfAnyRankEndsTheJobAndItGoesOn) {
  const Words endless = kEndless + Words{"--out", "a"};
  for (const int victim : {0, 1, 2}) {
    const int64_t saved = SavedStep("a");
    auto running = StartRanks(GetParam(), 3,
                              IsRun("a") ? Words{"train", "--resume", "a", "--quiet"} : endless);
    const std::vector<pid_t> processes = AwaitRanks(*running, 3);
    ASSERT_EQ(processes.size(), 3u) << running->err();
    ASSERT_TRUE(AwaitStep(*running, "a", saved + 2)) << running->err();
    ::kill(processes[size_t(victim)], SIGKILL);
    const Outcome outcome = running->Wait(kTimeout);
    EXPECT_TRUE(outcome.in_time) << outcome.err;
    EXPECT_GT(outcome.exit_code, 0);
    EXPECT_EQ(FirstNamed(outcome.err), victim) << outcome.err;
    EXPECT_EQ(Leftovers(Now() + kTimeout), "");
  }
  const std::string epochs = std::to_string(SavedStep("a") + 2);
  TrainRanks(GetParam(), 3, {"train", "--resume", "a", "--epochs", epochs, "--quiet"});
  EXPECT_EQ(int64_t(Epochs("a").size()), std::stoll(epochs));
}

INSTANTIATE_TEST_SUITE_P(All, LbfgsKillTest,
                         testing::ValuesIn(Transports([](const TransportKind& kind) {
                           return StartsItself(kind) && ManyProcesses(kind);
                         })),
                         TransportName);

}  // namespace
}  // namespace trireme::whole
