// Sweeps of whole runs: killed, stopped, failing; and what is predicted from them.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <map>

#include "support/ranks_test.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

namespace fs = std::filesystem;

class SweepRunTest : public WholeTest {
 protected:
  // Threads and processes, 1, 2 and 4 ranks, 0.2 s each.
  const Words kSweep = {"sweep",     "iris",
                        "--vary",    "transport.ranks=1,2,4",
                        "--vary",    "transport.name=threads,shm",
                        "--set",     "emulate.step_ms=20",
                        "--steps",   "10",
                        "--threads", "1",
                        "--repeat",  "2",
                        "--out",     "s"};

  // The summaries that are there, with when they were written.
  std::map<std::string, fs::file_time_type> Done() {
    std::map<std::string, fs::file_time_type> done;
    if (!fs::exists(At("s/runs"))) return done;
    for (const auto& entry : fs::directory_iterator(At("s/runs"))) {
      std::error_code gone;
      const auto when = fs::last_write_time(entry.path() / "summary.json", gone);
      if (!gone) done[entry.path().filename().string()] = when;
    }
    return done;
  }

  void AwaitDone(Running& running, size_t runs) {
    for (const Stopwatch watch; watch.seconds() < kTimeout && !running.Over(); SleepFor(0.01)) {
      if (Done().size() >= runs) return;
    }
  }

  std::vector<std::string> Combinations() {
    std::vector<std::string> all;
    const Json json = ParseJson(Read("s/sweep.json"), "s");
    for (const Json& row : json.At("rows").Items()) {
      all.push_back(row.At("values").Text() + std::to_string(row.At("runs").Items().size()));
      EXPECT_GT(row.At("train_seconds").At("median").AsDouble(), 0.19);
      EXPECT_NE(row.Find("speedup"), nullptr);
    }
    return all;
  }
};

TEST_F(SweepRunTest, KilledAndStartedAgainNoRunIsDoneTwice) {
  size_t kept = 0;
  for (const size_t kill_at : {1, 5}) {
    auto running = Start(kSweep);
    AwaitDone(*running, kill_at);
    SleepFor(0.1);  // in the middle of the next one
    running->Kill(SIGKILL);
    running->Wait(kTimeout);
    const auto before = Done();
    EXPECT_GE(before.size(), kill_at);
    kept = before.size();
    SleepFor(0.3);
    EXPECT_EQ(Done(), before) << "a child outlived the sweep";
  }
  const auto before = Done();
  EXPECT_LT(kept, 12u);
  const Outcome run = Succeed(kSweep);
  for (const auto& [name, when] : before) EXPECT_EQ(Done()[name], when) << name << " ran twice";
  EXPECT_EQ(Done().size(), 12u);
  const auto rows = Combinations();
  EXPECT_EQ(rows.size(), 6u);
  for (const std::string& row : rows) EXPECT_EQ(row.back(), '2');
  EXPECT_NE(run.out.find("speed-up"), run.out.npos) << run.out;
  EXPECT_NE(Read("s/page.html").find("Speed-up over ranks"), std::string::npos);
  Refuse(kSweep + Words{"--seed", "7"}, 2, {"another sweep", "--out"});
}

TEST_F(SweepRunTest, ASignalEndsTheChildAndTheSweepGoesOnLater) {
  auto running = Start(kSweep);
  AwaitDone(*running, 2);
  running->Kill(SIGINT);
  const Outcome stopped = running->Wait(kTimeout);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("continue with: trireme sweep iris"), stopped.err.npos) << stopped.err;
  const auto before = Done();
  EXPECT_LT(before.size(), 12u);
  Succeed(kSweep);
  for (const auto& [name, when] : before) EXPECT_EQ(Done()[name], when) << name << " ran twice";
  EXPECT_EQ(Done().size(), 12u);
}

TEST_F(SweepRunTest, ACombinationThatFailsIsARowAndTheEndIsAFailure) {
  const Outcome run =
      Run({"sweep", "iris", "--vary", "strategy.name=hogwild,allreduce", "--transport", "tcp",
           "--ranks", "2", "--steps", "4", "--repeat", "1", "--out", "s"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_NE(run.out.find("failed: "), run.out.npos) << run.out;
  const Json json = ParseJson(Read("s/sweep.json"), "s");
  EXPECT_NE(json.At("rows").Items()[0].At("error").AsString().find("share memory"),
            std::string::npos);
  EXPECT_NE(json.At("rows").Items()[1].Find("train_seconds"), nullptr);
  EXPECT_EQ(Read("s/sweep.csv").find("strategy.name,repetition,"), 0u);
}

// Weak scaling: every worker has as many samples, whatever the recipe says of the batch.
TEST_F(SweepRunTest, SamplesOfAWorkerCanBeVaried) {
  Succeed({"sweep", "iris", "--vary", "trainer.batch_per_worker=4,8", "--vary",
           "transport.ranks=1,2", "--steps", "20", "--repeat", "1", "--out", "s"});
  EXPECT_NE(Read("s/runs/c003-r1/config.toml").find("batch_per_worker = 8"), std::string::npos);
  EXPECT_EQ(ParseJson(Read("s/sweep.json"), "s").At("rows").Items().size(), 4u);
}

TEST_F(SweepRunTest, RefusesWhatMakesNoSense) {
  Refuse({"sweep", "iris"}, 2, {"--vary"});
  Refuse({"sweep", "iris", "--vary", "transport.rank=1,2"}, 2, {"transport.ranks"});
  Refuse({"sweep", "iris", "--vary", "transport.ranks=1,x"}, 2, {"transport.ranks", "x"});
  Refuse({"sweep", "irs", "--vary", "transport.ranks=1,2"}, 2, {"irs"});
  Refuse({"replay", "ddp"}, 2, {"ddp-sweep"});
  Refuse({"replay", "bsp-mnist", "--transport", "tcp"}, 2, {"--transport", "bsp-mnist"});
  Refuse({"replay", "iris-mpi", "--transport", "tpc"}, 2, {"tpc", "list transports"});
  Refuse({"scale"}, 2, {"run"});
  Refuse({"scale", "iris"}, 2, {"--link"});
  Refuse({"scale", "iris", "--link", "fast"}, 2, {"1Gbit/s,5ms"});
  Refuse({"scale", "--published", "ddp-nodes"}, 2, {"--fit"});
  Refuse({"scale", "--published", "ddp-nodes", "--fit", "1,x"}, 2, {"--fit"});
  Refuse({"scale", "--published", "ddp-nodes", "--fit", "1,2,5"}, 2, {"no such point"});
  Refuse({"scale", "iris", "--link", "1Gbit/s", "--jitter", "-3%"}, 2, {"--jitter"});
}

TEST_F(SweepRunTest, PredictsFromRuns) {
  for (const char* ranks : {"1", "2", "3"}) {
    Succeed({"train", "iris", "--ranks", ranks, "--transport", "tcp", "--epochs", "2", "--set",
             "transport.throttle=1e6", "--set", "strategy.algorithm=ring", "--set",
             "emulate.step_ms=5", "--threads", "1", "--quiet", "--out", std::string("r") + ranks});
  }
  Succeed({"scale", "r1", "r2", "--check", "r3", "--to", "10000", "--jitter", "5%", "--out", "p"});
  const Json json = ParseJson(Read("p/scale.json"), "p");
  const auto& rows = json.At("rows").Items();
  ASSERT_GE(rows.size(), 10u);
  EXPECT_EQ(rows[2].At("ranks").AsInt(), 3);
  EXPECT_FALSE(rows[2].At("fitted").AsBool());
  EXPECT_GT(rows[2].At("measured_step_seconds").AsDouble(), 0.005);
  EXPECT_EQ(rows.back().At("ranks").AsInt(), 10000);
  EXPECT_NE(Read("p/page.html").find("measured"), std::string::npos);
}

TEST_F(SweepRunTest, AReplayRunsEndToEnd) {
  const Outcome run = Succeed({"replay", "iris-mpi", "--repeat", "1", "--out", "r", "--quiet"});
  EXPECT_NE(run.out.find("all-reduce"), run.out.npos);
  const Json json = ParseJson(Read("r/replay.json"), "r");
  const Json& sweep = json.At("parts").Items()[0].At("sweep");
  EXPECT_EQ(sweep.At("rows").Items().size(), 6u);
  EXPECT_EQ(Read("r/page.html").find("not available"), std::string::npos);
  EXPECT_NE(run.out.find("send and receive"), run.out.npos);
  EXPECT_NE(Succeed({"replay", "scenes-mpi", "--out", "q"}).out.find("skipped: "),
            std::string::npos);
}

TEST_F(SweepRunTest, AReplayRunsOverMpiWhereThereIsAPlugin) {
  const Words words{"replay",  "iris-mpi", "--transport", "mpi", "--repeat", "1",
                    "--steps", "20",       "--out",       "r",   "--quiet"};
  if (!HasMpi()) return Refuse(words, 1, {"plugin"});
  Succeed(words, {"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                  "ASAN_OPTIONS=detect_leaks=0"});
  for (const auto& [run, ranks] : {std::pair("c000", 2), {"c001", 1}, {"c002", 3}, {"c003", 2}}) {
    const std::string folder = fmt::format("r/ranks/runs/{}-r1", run);
    EXPECT_EQ(Number(folder, "ranks"), ranks);
    const bool alone = ranks == 1;  // then nobody talks
    EXPECT_EQ(Read(folder + "/config.toml").find("name = \"mpi\"") == std::string::npos, alone);
  }
}

}  // namespace
}  // namespace trireme::whole
