// Servers and clients at a free pace that are ranks of an MPI job.
#include <csignal>

#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

class MpiServersTest : public RanksTest {
 protected:
  void SetUp() override {
    if (!HasMpi()) GTEST_SKIP() << "no MPI on this machine";
  }
  static Words Train(const std::string& strategy, int64_t epochs, const std::string& out) {
    return {"train",     "iris", "--strategy", strategy, "--epochs", std::to_string(epochs),
            "--threads", "1",    "--quiet",    "--out",  out};
  }
};

struct Try {
  const char* strategy;
  int ranks;
  Words more;
};

class MpiStrategiesTest : public MpiServersTest, public testing::WithParamInterface<Try> {};
TEST_P(MpiStrategiesTest, CountEveryPositionOnce) {
  const Try& job = GetParam();
  TrainRanks("mpi", job.ranks, Train(job.strategy, 20, "a") + job.more);
  EXPECT_EQ(Summary("a").At("transport").AsString(), "mpi");
  EXPECT_EQ(Number("a", "ranks"), job.ranks);
  ExpectIrisCountedOnce("a", 20);
}
const Words kPlain = {"--set", "optimizer.momentum=0", "--lr", "0.02"};
const Words kMemory = {"--set", "strategy.centre=memory"};
const Words kSeldom = {"--set", "strategy.period=10"};
INSTANTIATE_TEST_SUITE_P(
    All, MpiStrategiesTest,
    testing::Values(Try{"async-ps", 3, {}}, Try{"easgd", 3, {}}, Try{"ssp", 3, {}},
                    Try{"federated", 3, {}}, Try{"mpi-ps", 5, {}}, Try{"downpour", 3, kPlain},
                    Try{"downpour", 4, kPlain + Words{"--set", "strategy.servers=2"}},
                    // In windows; a turn there may have to wait for a rank that has no core.
                    Try{"hogwild", 3, kMemory + kPlain + kSeldom}, Try{"pgas", 4, kSeldom},
                    Try{"hybrid", 5, kSeldom + Words{"--set", "strategy.groups=2"}}));

TEST_F(MpiServersTest, WeightsInMemoryLieInWindowsAndTheRunSaysSo) {
  auto running =
      StartRanks("mpi", 3,
                 {"train", "iris", "--strategy", "easgd", "--set", "strategy.centre=memory",
                  "--epochs", "5", "--threads", "1", "--out", "a"});
  const Outcome outcome = running->Wait(kTimeout);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("the way to the common memory: MPI windows of 3 ranks"),
            std::string::npos)
      << outcome.err;
  ExpectIrisCountedOnce("a", 5);
}

TEST_F(MpiServersTest, ClocksHaveTheBitsOfOneRank) {
  const Words equal = {"--deterministic", "--set", "trainer.shards=4"};
  TrainRanks("mpi", 4, Train("ssp", 5, "many") + equal + Words{"--set", "strategy.staleness=0"});
  Succeed(Train("allreduce", 5, "alone") + equal);
  EXPECT_EQ(Hash("many"), Hash("alone"));
}

// Leases by rank 0, and where workers take them by themselves.
class MpiSignalTest : public MpiServersTest, public testing::WithParamInterface<Try> {};
TEST_P(MpiSignalTest, LeavesACheckpointFromWhichOthersGoOn) {
  auto running = StartRanks("mpi", 3,
                            Train(GetParam().strategy, 1000000, "a") + GetParam().more +
                                Words{"--set", "trainer.evaluate_every=0", "--set",
                                      "strategy.snapshot_s=0.1", "--set", "emulate.step_ms=1"});
  const auto works = [](const std::vector<ClientCounts>& clients) {
    return clients.size() == 2 && clients[0].samples > 0 && clients[1].samples > 0;
  };
  ASSERT_TRUE(AwaitClients(*running, "a", works)) << running->err();
  running->Kill(SIGUSR1);  // mpirun takes a SIGTERM for itself, but hands this one on
  EXPECT_EQ(running->Wait(kTimeout).exit_code, 143) << running->err();
  const int64_t epochs = SavedStep("a") / 15 + 2;
  Succeed({"train", "--resume", "a", "--quiet", "--epochs", std::to_string(epochs), "--transport",
           "threads", "--ranks", "3", "--set", "emulate.step_ms=0"});
  ExpectIrisCountedOnce("a", epochs);
  EXPECT_EQ(Leftovers(Now() + 40), "");
}
INSTANTIATE_TEST_SUITE_P(All, MpiSignalTest,
                         testing::Values(Try{"async-ps", 3, {}}, Try{"easgd", 3, kMemory + kSeldom},
                                         Try{"hogwild", 3, kMemory + kPlain + kSeldom}));

}  // namespace
}  // namespace trireme::whole
