// The same run over every transport: equal bits, and a test that is shared exactly.
// scripts/check-equality does it with more steps and every combination.
#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

// Batch-norm, 12 shards, 96 samples a step; 210 test samples are evaluated in three chunks, the
// last one short.
const Words kCnn = {"train",
                    "--model",
                    "cnn",
                    "--data",
                    "synthetic:28x28x1:10:1050",
                    "--batch",
                    "96",
                    "--lr",
                    "0.05",
                    "--steps",
                    "2",
                    "--set",
                    "trainer.shards=12",
                    "--deterministic",
                    "--quiet"};

class RanksEqualityTest : public RanksTest, public testing::WithParamInterface<Transport> {
 protected:
  void SetUp() override {
    if (NeedsMpirun(GetParam()) && !HasMpi()) GTEST_SKIP() << "no MPI on this machine";
    Succeed(kCnn + Words{"--threads", "2", "--out", "alone"});
  }

  // As the run of one rank alone.
  void Check(int workers, int servers, int threads, const Words& more) {
    const std::string run = std::to_string(workers) + "-" + std::to_string(threads);
    SCOPED_TRACE(run);
    TrainRanks(GetParam(), workers + servers,
               kCnn + more + Words{"--threads", std::to_string(threads), "--out", run});
    if (HasFailure()) return;
    EXPECT_EQ(Hash(run), Hash("alone"));
    EXPECT_EQ(Number(run, "ranks"), workers + servers);
    EXPECT_EQ(Summary(run).At("transport").AsString(), GetParam());
    EXPECT_EQ(Number(run, "test_loss"), Number("alone", "test_loss"));
    EXPECT_EQ(Number(run, "train_loss"), Number("alone", "train_loss"));
    EXPECT_EQ(Summary(run).At("confusion").Text(), Summary("alone").At("confusion").Text());
    EXPECT_EQ(Tested(run), 210);
  }

  int64_t Tested(const std::string& run) {
    int64_t samples = 0;
    const Json summary = Summary(run);
    for (const Json& row : summary.At("confusion").Items()) {
      for (const Json& count : row.Items()) samples += count.AsInt();
    }
    return samples;
  }
};

TEST_P(RanksEqualityTest, AllReduce) {
  for (int workers = 1; workers <= 4; ++workers) {
    // Under mpirun a world of one is the program alone.
    if (NeedsMpirun(GetParam()) && workers == 1) continue;
    Check(workers, 0, 1 + workers % 3, {});
  }
}

TEST_P(RanksEqualityTest, SyncPs) {
  for (int workers = 1; workers <= 4; ++workers) {
    Check(workers, 1, 1 + (workers + 1) % 3, {"--strategy", "sync-ps"});
  }
}

TEST_P(RanksEqualityTest, SyncPsWithEveryOverlap) {
  int workers = 1;
  for (const std::string overlap : {"none", "broadcast", "both"}) {
    ++workers;
    SCOPED_TRACE(overlap);
    Check(workers, 1, 1 + workers % 3,
          {"--strategy", "sync-ps", "--set", "strategy.overlap=" + overlap, "--set",
           "strategy.bucket_mb=0.0002"});
  }
}

class RanksBspTest : public RanksEqualityTest {};  // its workers are threads
TEST_P(RanksBspTest, Bsp) {
  for (int workers = 1; workers <= 4; ++workers) {
    Check(workers, 0, 1 + workers % 3, {"--strategy", "bsp"});
  }
}

class RanksBalanceTest : public RanksTest, public testing::WithParamInterface<Transport> {};

// Three epochs and a part, one of the workers slow: shards move, the bits do not; nor in a run that
// goes on within an epoch.
TEST_P(RanksBalanceTest, ShardsByRateChangeNoBits) {
  Succeed(kSmallJob + Words{"--steps", "130", "--out", "alone"});
  const Words slow = {"--set", "strategy.balance=rate", "--set",  "emulate.step_ms=2",
                      "--set", "emulate.slow=1:5x",     "--steps"};
  TrainRanks(GetParam(), 3, kSmallJob + slow + Words{"100", "--out", "balanced"});
  if (HasFailure()) return;
  TrainRanks(GetParam(), 3, {"train", "--resume", "balanced", "--steps", "130", "--quiet"});
  if (HasFailure()) return;
  EXPECT_EQ(Hash("balanced"), Hash("alone"));
  const std::vector<Json> epochs = Epochs("balanced");
  ASSERT_GE(epochs.size(), 3u);
  EXPECT_EQ(epochs[0].At("shards").Text(), "[4,4,4]");
  for (const Json& epoch : epochs) {
    if (!epoch.Find("shards")) continue;
    int64_t shards = 0;
    for (const Json& count : epoch.At("shards").Items()) shards += count.AsInt();
    EXPECT_EQ(shards, 12);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RanksBalanceTest, testing::ValuesIn(Transports(StartsItself)),
                         TransportName);
INSTANTIATE_TEST_SUITE_P(All, RanksEqualityTest, testing::ValuesIn(Transports(Any)), TransportName);
INSTANTIATE_TEST_SUITE_P(All, RanksBspTest, testing::Values("threads"), TransportName);

}  // namespace
}  // namespace trireme::whole
