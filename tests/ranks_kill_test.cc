// kill -9 of a random rank at random moments: the job ends soon, says which rank it was, leaves
// nothing behind, and resumes to the bits of an undisturbed run.
// TRIREME_KILLS, TRIREME_RANKS and TRIREME_SEED in the environment ask for more
// (scripts/soak-kill --transport).
#include <fmt/format.h>

#include <csignal>
#include <random>

#include "base/text.h"
#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

const Words kTrain = kSmallJob + Words{"--steps"};
const Words kEndless = {"100000000"};
// Seconds from a death to the end of the job: few, and on a busy machine some more; not
// transport.timeout_s, which is 360.
constexpr double kSoon = 120;

class RanksKillTest : public RanksTest, public testing::WithParamInterface<Transport> {
 protected:
  void SetUp() override {
    if (NeedsMpirun(GetParam()) && !HasMpi()) GTEST_SKIP() << "no MPI on this machine";
  }

  // A new life of the run.
  std::unique_ptr<Running> Live(int ranks) {
    return StartRanks(GetParam(), ranks,
                      IsRun("parts") ? Words{"train", "--resume", "parts", "--quiet"}
                                     : kTrain + kEndless + Words{"--out", "parts"});
  }

  // Resumed for a few steps more it is the undisturbed run.
  void CompareWithUndisturbed(int ranks) {
    const std::string steps = std::to_string(SavedStep("parts") + 30);
    const Words words =
        IsRun("parts") ? Words{"train", "--resume", "parts", "--quiet", "--steps"} : kTrain;
    TrainRanks(GetParam(), ranks,
               words + Words{steps} + (IsRun("parts") ? Words{} : Words{"--out", "parts"}));
    // After many kills there are many steps: without their checkpoints it takes seconds.
    Succeed(With(kTrain + Words{steps}, {"--set", "trainer.checkpoint_steps=0", "--out", "whole"}));
    EXPECT_EQ(Hash("parts"), Hash("whole"));
    EXPECT_EQ(Number("parts", "train_loss"), Number("whole", "train_loss"));
    EXPECT_EQ(Epochs("parts").size(), Epochs("whole").size());
    std::printf("%s undisturbed\n%s resumed, %s steps\n", Hash("whole").c_str(),
                Hash("parts").c_str(), steps.c_str());
  }
};

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

std::string FirstError(const std::string& err) {
  for (const std::string& line : Split(err, '\n')) {
    if (line.find("rank ") != line.npos && line.find(" ranks: ") == line.npos) return line;
  }
  return "";
}

TEST_P(RanksKillTest, OfAnyRankAtAnyMomentCostsNothing) {
  const int kills = Wanted("TRIREME_KILLS", 5), ranks = Wanted("TRIREME_RANKS", 3);
  const int seed = Wanted("TRIREME_SEED", 8);
  SCOPED_TRACE(SeedText(seed));
  std::mt19937 random{unsigned(seed)};
  // Of a life: its start, steps, checkpoints. Not of MPI's start: when a rank dies inside MPI_Init,
  // Open MPI 4's mpirun now and then waits for ever.
  std::uniform_real_distribution<double> moment(0, 1.5);
  std::uniform_int_distribution<int> any(0, ranks - 1);
  for (int kill = 1; kill <= kills; ++kill) {
    const int64_t saved = SavedStep("parts");
    auto running = Live(ranks);
    const std::vector<pid_t> processes = AwaitRanks(*running, ranks);
    ASSERT_EQ(int(processes.size()), ranks) << running->err();
    const double after_s = moment(random);
    const int victim = any(random);
    if (NeedsMpirun(GetParam())) {
      ASSERT_TRUE(AwaitStep(*running, "parts", saved + 20)) << running->err();
    }
    SleepFor(after_s);
    const double killed = Now();
    ::kill(processes[victim], SIGKILL);
    const Outcome outcome = running->Wait(kTimeout);
    const double ended_s = Now() - killed;
    const std::string left = Leftovers(killed + kSoon);
    std::printf("%2d: rank %d after %.2f s, saved: step %lld; over in %.2f s, code %d: %s\n", kill,
                victim, after_s, static_cast<long long>(SavedStep("parts")), ended_s,
                outcome.exit_code, FirstError(outcome.err).c_str());
    EXPECT_LT(ended_s, kSoon);
    EXPECT_GT(outcome.exit_code, 0) << "signal " << outcome.signal;
    EXPECT_EQ(FirstNamed(outcome.err), victim) << outcome.err;
    if (Holds(outcome.err, "killed by signal 9") && SavedStep("parts") > 0 &&
        !NeedsMpirun(GetParam())) {
      EXPECT_TRUE(Holds(outcome.err, "; continue with: trireme train --resume parts"))
          << outcome.err;
    }
    EXPECT_EQ(left, "");
  }
  CompareWithUndisturbed(ranks);
}

TEST_P(RanksKillTest, OfWhoStartedThemLeavesNoOrphans) {
  // A killed mpirun cannot take Open MPI's files away; they go with the test's folder.
  environment_.push_back("OMPI_MCA_btl_vader_backing_directory=" + At("tmp"));
  auto running = Live(3);
  ASSERT_TRUE(AwaitStep(*running, "parts", 20)) << running->err();
  const double killed = Now();
  running->Kill(SIGKILL);
  running->Wait(kTimeout);
  EXPECT_EQ(NeedsMpirun(GetParam()) ? Orphans(killed + kSoon) : Leftovers(killed + kSoon), "");
  CompareWithUndisturbed(3);
}

INSTANTIATE_TEST_SUITE_P(All, RanksKillTest, testing::ValuesIn(Transports(ManyProcesses)),
                         TransportName);

}  // namespace
}  // namespace trireme::whole
