// Jobs that make no sense are refused, and the error names the rank or the key.
#include <fmt/format.h>

#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

class RanksRefusedTest : public RanksTest {
 protected:
  // One rank, started by hand: where it is comes from the environment.
  std::unique_ptr<Running> StartRank(int rank, int world, const Words& more,
                                     const std::string& secret = "oars",
                                     const std::string& folder = "") {
    const Words place = {"env",
                         "-C",
                         At(folder),
                         fmt::format("TRIREME_RANK={}", rank),
                         fmt::format("TRIREME_WORLD={}", world),
                         fmt::format("TRIREME_MEET=127.0.0.1:{}", port_),
                         "TRIREME_SECRET=" + secret};
    return Start(
        Words{"train", "--quiet", "--steps", "5", "--out", "a", "--set", "transport.timeout_s=60"} +
            more,
        place);
  }

  void ExpectError(Running& running, int code, const std::string& part) {
    const Outcome outcome = running.Wait(kTimeout);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_NE(outcome.err.find(part), outcome.err.npos) << part << " is not in: " << outcome.err;
  }

  const int port_ = FreePort();
};

TEST_F(RanksRefusedTest, ThreeStartedByHandTrainTogether) {
  std::unique_ptr<Running> ranks[] = {StartRank(0, 3, {}), StartRank(1, 3, {}),
                                      StartRank(2, 3, {})};
  for (auto& rank : ranks) EXPECT_EQ(rank->Wait(kTimeout).exit_code, 0) << rank->err();
  EXPECT_EQ(Number("a", "ranks"), 3);
}

TEST_F(RanksRefusedTest, ARankWithAnotherRecipe) {
  std::unique_ptr<Running> ranks[] = {StartRank(0, 3, {}), StartRank(1, 3, {}),
                                      StartRank(2, 3, {"--lr", "0.3"})};
  for (auto& rank : ranks) {
    ExpectError(*rank, 1,
                "rank 2's recipe differs from rank 0's: optimizer.lr is 0.3, at rank 0 0.02");
  }
}

TEST_F(RanksRefusedTest, ARankWithOtherData) {
  std::string lines;
  for (int i = 0; i < 90; ++i) lines += fmt::format("{},{},{}\n", i, i * i % 17, i % 3);
  Write("fewer.csv", lines.substr(0, lines.rfind('\n', lines.size() - 2) + 1));
  Write("other.csv", "1" + lines);  // one value
  for (const std::string file : {"fewer.csv", "other.csv"}) {
    SCOPED_TRACE(file);
    // The same name, as on another machine.
    Write("0/a.csv", lines);
    Write("1/a.csv", Read(file));
    const Words words = {"--model", "mlp:2-8-3", "--data", "csv:a.csv", "--out", file + "-run"};
    std::unique_ptr<Running> ranks[2];
    for (int r = 0; r < 2; ++r) ranks[r] = StartRank(r, 2, words, "oars", std::to_string(r));
    for (auto& rank : ranks) ExpectError(*rank, 1, "rank 1's data differ from rank 0's");
  }
}

TEST_F(RanksRefusedTest, WorldsOfOtherSizes) {
  auto zero = StartRank(0, 2, {}), one = StartRank(1, 3, {});
  ExpectError(*one, 1, "rank 1 was started in a world of 3, rank 0 in a world of 2");
  ExpectError(*zero, 1, "rank 1 was started in a world of 3, rank 0 in a world of 2");
}

TEST_F(RanksRefusedTest, AnotherSecret) {
  auto zero = StartRank(0, 2, {}), one = StartRank(1, 2, {}, "pedals");
  ExpectError(*one, 1, "the run's secret is different; use the same transport.secret_file");
  // A stranger does not end the job: the right rank may still come.
  EXPECT_FALSE(zero->Over()) << zero->err();
  auto right = StartRank(1, 2, {});
  EXPECT_EQ(right->Wait(kTimeout).exit_code, 0) << right->err();
  EXPECT_EQ(zero->Wait(kTimeout).exit_code, 0) << zero->err();
}

TEST_F(RanksRefusedTest, WithoutASecret) {
  auto running = StartRank(0, 2, {}, "");
  ExpectError(*running, 2, "transport.secret_file");
}

// As torchrun starts them, whose agent listens on MASTER_PORT itself.
TEST_F(RanksRefusedTest, TwoStartedByTorchrunTrainTogether) {
  std::unique_ptr<Running> ranks[2];
  for (int r = 0; r < 2; ++r) {
    ranks[r] =
        Start({"train", "--quiet", "--steps", "5", "--out", "a"},
              {"env", fmt::format("RANK={}", r), "WORLD_SIZE=2", fmt::format("LOCAL_RANK={}", r),
               "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=somewhere",
               fmt::format("MASTER_PORT={}", port_ - 1), "TORCHELASTIC_USE_AGENT_STORE=True"});
  }
  for (auto& rank : ranks) EXPECT_EQ(rank->Wait(kTimeout).exit_code, 0) << rank->err();
  EXPECT_EQ(Number("a", "ranks"), 2);
}

TEST_F(RanksRefusedTest, ARankIsNamedOnce) {
  const Outcome outcome = Run({"train", "--ranks", "2", "--transport", "tcp", "--steps", "2",
                               "--quiet", "--set", "transport.bind=8.8.8.8"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("error: rank 1 of 2: cannot listen on 8.8.8.8:0: "), outcome.err.npos)
      << outcome.err;
  EXPECT_EQ(outcome.err.find("(rank 1 of 2)"), outcome.err.npos) << outcome.err;
}

// At once, and not by those who then seem to be missing.
TEST_F(RanksRefusedTest, MoreConnectionsThanOpenFilesAreAllowed) {
  const Words limited = {"bash", "-c", "ulimit -n 20; exec \"$@\"", "bash"};
  const Words words = {"train", "--ranks", "16", "--transport", "tcp", "--steps", "2", "--quiet"};
  auto running = Start(words, limited);
  ExpectError(*running, 1, "too many open files (ulimit -n is 20); raise the limit to about 32");
}

TEST_F(RanksRefusedTest, UnderMpirun) {
  if (!HasMpi()) GTEST_SKIP() << "no MPI on this machine";
  const auto refuse = [&](const Words& more, const std::string& part) {
    const Outcome outcome =
        StartRanks("mpi", 2, Words{"train", "--out", "a"} + more)->Wait(kTimeout);
    EXPECT_NE(outcome.exit_code, 0) << part;
    EXPECT_NE(outcome.err.find(part), outcome.err.npos) << part << " is not in: " << outcome.err;
    EXPECT_FALSE(Exists(At("a")));
    EXPECT_EQ(Leftovers(Now() + 40), "");
  };
  refuse({"--ranks", "3"}, "transport.ranks = 3, but Open MPI started 2 processes");
  refuse({"--transport", "shm"}, "Open MPI started 2 processes, but with transport.name = \"shm\"");
  refuse({"--transport", "threads"}, ", or start one process with --ranks 2");
  refuse({"--strategy", "bsp"}, "strategy bsp: its workers must be threads of one process");
}

TEST_F(RanksRefusedTest, WhatDoesNotFitTogether) {
  const Words train = {"train", "--out", "a"};
  for (const std::string transport : {"shm", "tcp"}) {
    Refuse(train + Words{"--ranks", "3", "--strategy", "bsp", "--transport", transport}, 2,
           {"strategy bsp", "--transport threads"});
  }
  const Words difference = {"--strategy", "sync-ps", "--ranks",
                            "3",          "--set",   "strategy.merge=difference"};
  Refuse(train + difference + Words{"--set", "optimizer.momentum=0.9"}, 2,
         {"strategy.merge = \"difference\"", "optimizer.momentum=0", "strategy.merge=gradient"});
  Refuse(train + Words{"--strategy", "sync-ps", "--ranks", "1"}, 2,
         {"transport.ranks", "sync-ps", "2 ranks"});
  Refuse(train + Words{"--transport", "mpi"}, 2, {"mpirun"});
  EXPECT_FALSE(Exists(At("a")));
}

}  // namespace
}  // namespace trireme::whole
