// Stopped on four ranks, resumed on three over another transport: every position of an epoch is
// used exactly once, and the result is that of a run that was never stopped.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "base/sha256.h"
#include "base/text.h"
#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

constexpr int64_t kSamples = 5000;
constexpr int64_t kStepsPerEpoch = 53;  // of 96 samples, the last of fewer
const Words kTrain = {"train",
                      "--model",
                      "mlp:784-64-10",
                      "--data",
                      "synthetic:28x28x1:10:5000",
                      "--batch",
                      "96",
                      "--lr",
                      "0.02",
                      "--set",
                      "optimizer.schedule=constant",
                      "--set",
                      "trainer.shards=12",
                      "--set",
                      "trainer.checkpoint_steps=5",
                      "--deterministic",
                      "--threads",
                      "1",
                      "--quiet"};

struct Case {
  Transport before;
  bool one_rank;  // gets the signal; else who started them
  Transport after;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << fmt::format("{}_{}_{}", c.before, c.one_rank ? "OneRank" : "All", c.after);
}

class RanksStopTest : public RanksTest, public testing::WithParamInterface<Case> {
 protected:
  // The lines of all workers: "step,epoch,position,sample", sorted.
  std::multiset<std::string> ReadLedger(const std::string& folder) {
    std::multiset<std::string> lines;
    for (const auto& file : std::filesystem::directory_iterator(At(folder))) {
      for (const std::string& line : Split(ReadFile(file.path()), '\n')) {
        if (!line.empty() && !line.starts_with("step")) lines.insert(line);
      }
    }
    return lines;
  }

  static std::string HashOf(const std::multiset<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return Sha256Hex(text);
  }

  // Starts the job or resumes it, and stops it a little later; the step.
  int64_t LiveAndStop(int64_t at_least) {
    const Case& c = GetParam();
    const bool fresh = !IsRun("parts");
    auto running = StartRanks(c.before, 4,
                              fresh ? kTrain + Words{"--steps", "100000000", "--out", "parts",
                                                     "--set", "data.ledger=ledger"}
                                    : Words{"train", "--resume", "parts", "--quiet"});
    EXPECT_TRUE(AwaitStep(*running, "parts", at_least)) << running->err();
    if (c.one_rank) {
      const std::vector<pid_t> processes = AwaitRanks(*running, 4);
      EXPECT_EQ(processes.size(), 4u);
      if (processes.size() == 4) kill(processes[2], SIGTERM);
    } else {
      // mpirun takes a SIGTERM for itself, but hands this one on.
      running->Kill(NeedsMpirun(c.before) ? SIGUSR1 : SIGTERM);
    }
    const Outcome outcome = running->Wait(kTimeout);
    EXPECT_EQ(outcome.exit_code, 143) << outcome.err;
    EXPECT_NE(outcome.err.find("trireme train --resume parts"), outcome.err.npos) << outcome.err;
    EXPECT_EQ(Leftovers(Now() + 40), "");
    EXPECT_FALSE(IsDone("parts"));
    return SavedStep("parts");
  }

  // Every position of each whole epoch once, and every sample once.
  void ExpectEachOnce(const std::multiset<std::string>& lines, int64_t epochs) {
    std::map<std::string, std::set<std::string>> positions, samples;  // by epoch
    for (const std::string& line : lines) {
      const auto column = Split(line, ',');
      ASSERT_EQ(column.size(), 4u) << line;
      EXPECT_TRUE(positions[column[1]].insert(column[2]).second) << line << " is there twice";
      EXPECT_TRUE(samples[column[1]].insert(column[3]).second) << line << " is there twice";
    }
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      EXPECT_EQ(int64_t(positions[std::to_string(epoch)].size()), kSamples) << epoch;
      EXPECT_EQ(int64_t(samples[std::to_string(epoch)].size()), kSamples) << epoch;
    }
  }
};

TEST_P(RanksStopTest, GoesOnInTheMiddleOfAnEpochOnOtherRanks) {
  const Case& c = GetParam();
  if ((NeedsMpirun(c.before) || NeedsMpirun(c.after)) && !HasMpi()) GTEST_SKIP() << "no MPI here";
  int64_t stopped = 0;
  do {
    stopped = LiveAndStop(stopped + 10);
    ASSERT_FALSE(HasFailure());
  } while (stopped % kStepsPerEpoch == 0);  // not in the middle of an epoch: once more

  const std::string all = std::to_string(stopped + kStepsPerEpoch + 7);
  TrainRanks(c.after, 3, {"train", "--resume", "parts", "--quiet", "--steps", all});
  Succeed(kTrain + Words{"--steps", all, "--out", "whole", "--set", "data.ledger=ledger-of-one"});
  EXPECT_EQ(Hash("parts"), Hash("whole"));
  EXPECT_EQ(Number("parts", "train_loss"), Number("whole", "train_loss"));
  EXPECT_EQ(Number("parts", "test_loss"), Number("whole", "test_loss"));
  EXPECT_EQ(Epochs("parts").size(), Epochs("whole").size());

  const auto used = ReadLedger("ledger");
  EXPECT_EQ(HashOf(used), HashOf(ReadLedger("ledger-of-one")));
  ExpectEachOnce(used, int64_t(Number("parts", "epochs")));
}

// A step that does not end: the first interrupt says what it waits for, the second ends all.
TEST_F(RanksTest, AStoppedRankDoesNotKeepTheSecondInterruptFromEnding) {
  for (const Transport transport : {"shm", "tcp"}) {
    auto running =
        StartRanks(transport, 2, kSmallJob + Words{"--steps", "100000000", "--out", transport});
    ASSERT_TRUE(AwaitStep(*running, transport, 20)) << running->err();
    const std::vector<pid_t> processes = AwaitRanks(*running, 2);
    ASSERT_EQ(processes.size(), 2u) << running->err();
    kill(processes[1], SIGSTOP);
    running->Kill(SIGINT);
    const std::string answer = "stopping after this step; press Ctrl-C again to stop immediately";
    EXPECT_TRUE(AwaitWords(*running, answer)) << running->err();
    running->Kill(SIGINT);
    EXPECT_EQ(running->Wait(kTimeout).exit_code, 130) << running->err();
    EXPECT_EQ(Leftovers(Now() + 40), "");
  }
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  return testing::PrintToString(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, RanksStopTest,
                         testing::Values(Case{"threads", false, "shm"}, Case{"shm", false, "mpi"},
                                         Case{"shm", true, "tcp"}, Case{"tcp", false, "threads"},
                                         Case{"tcp", true, "shm"}, Case{"mpi", false, "tcp"},
                                         Case{"mpi", true, "threads"}),
                         CaseName);

}  // namespace
}  // namespace trireme::whole
