// Several strategies beside each other, on a machine that is slower than it is.
#include <csignal>
#include <filesystem>
#include <map>
#include <set>

#include "strategy/presets.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class CompareTest : public WholeTest {
 protected:
  Json Compared(const std::string& out) { return ParseJson(Read(out + "/compare.json"), out); }
};

// Four workers of 10 ms a step, one of them ten times as slow: at a free pace the others take over
// what it does not do, in step all wait for it.
TEST_F(CompareTest, AFreePaceKeepsWhatTheWorkersCanDo) {
  const Outcome run = Succeed({"compare", "--strategies", "allreduce,hogwild,easgd", "--workers",
                               "4", "--threads", "1", "--step-ms", "10", "--slow", "3:10x", "--set",
                               "trainer.batch=16", "--steps", "80", "--out", "c"});
  EXPECT_NE(run.out.find("hogwild"), run.out.npos) << run.out;
  const Json all = Compared("c");
  const auto& runs = all.At("runs").Items();
  ASSERT_EQ(runs.size(), 3u);
  // In step each of the 80 steps takes as long as the slow one's. What the others make of a free
  // pace is told in samples, which a busy machine does not change.
  EXPECT_LT(runs[0].At("samples_per_second").AsDouble(), 16 / 0.1);
  for (const char* strategy : {"hogwild", "easgd"}) {
    const Json summary = Summary(std::string("c/") + strategy);
    const auto& clients = summary.At("clients").Items();
    ASSERT_EQ(clients.size(), 4u) << strategy;
    int64_t sum = 0;
    for (const Json& client : clients) sum += client.At("samples").AsInt();
    EXPECT_EQ(sum, 1200) << strategy;                                  // ten epochs
    EXPECT_LT(clients[3].At("samples").AsInt(), sum / 8) << strategy;  // a quarter in step
  }
  EXPECT_EQ(runs[2].At("ranks").AsInt(), 5);
  const Json summary = Summary("c/easgd");
  EXPECT_EQ(summary.At("emulated").At("slow").AsString(), "4:10x");  // the fourth worker
  EXPECT_EQ(Read("c/compare.csv").find("strategy,epoch,"), 0u);
  Succeed({"report", "c", "--out", "pages/c.html"});
  const std::string page = Read("pages/c.html");
  for (const char* part : {"Accuracy on test samples", "sent between ranks", "Updates of weights",
                           "Mean staleness", "trireme compare iris --strategies"}) {
    EXPECT_NE(page.find(part), page.npos) << part;
  }
}

// Whatever the strategy, its workers hear nothing from each other or from a server in less than the
// latency. Leases come two at a time, so that a step may cost half of it.
TEST_F(CompareTest, EveryStrategyPaysForAFarLink) {
  constexpr double kLatency_s = 0.05;
  constexpr int kSteps = 40;
  std::map<std::string, std::unique_ptr<Running>> running;
  for (const StrategyPreset& preset : StrategyPresets()) {
    const std::string name = preset.name;
    running[name] =
        Start({"compare", "--strategies", name, "--workers", "2", "--threads", "1", "--link",
               "10Gbit/s,50ms", "--steps", std::to_string(kSteps), "--set", "strategy.period=1",
               "--set", "strategy.push=1", "--set", "strategy.fetch=1", "--out", name});
  }
  std::set<std::string> refused;
  for (const auto& [name, run] : running) {
    if (run->Wait(kTimeout).exit_code != 0) {
      refused.insert(name);
      continue;
    }
    EXPECT_GE(Number(name + "/" + name, "train_seconds"), kSteps * kLatency_s / 2) << name;
  }
  // Their workers share memory, or the weights lie in memory.
  EXPECT_EQ(refused, (std::set<std::string>{"bsp", "hogwild", "hybrid", "pgas"}));
}

TEST_F(CompareTest, AStrategyThatFailsIsARowAndTheEndIsAFailure) {
  const Outcome run = Run({"compare", "--strategies", "local-sgd,hogwild", "--workers", "2",
                           "--link", "1Gbit/s,1ms", "--epochs", "2", "--set", "strategy.period=5",
                           "--for", "local-sgd:strategy.period=3", "--out", "c"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_NE(run.out.find("hogwild   failed: "), run.out.npos) << run.out;
  const Json all = Compared("c");
  EXPECT_NE(all.At("runs").Items()[1].At("error").AsString().find("share memory"),
            std::string::npos);
  EXPECT_EQ(all.At("runs").Items()[0].At("points").Items().size(), 2u);
  EXPECT_NE(Read("c/local-sgd/config.toml").find("latency_ms = 1"), std::string::npos);
  EXPECT_NE(Read("c/local-sgd/config.toml").find("period = 3"), std::string::npos);
}

TEST_F(CompareTest, GoesOnAfterASignal) {
  const Words compare{"compare",
                      "--strategies",
                      "allreduce,local-sgd",
                      "--workers",
                      "2",
                      "--epochs",
                      "3",
                      "--set",
                      "emulate.step_ms=40",
                      "--set",
                      "trainer.evaluate_every=0",
                      "--out",
                      "c"};
  const auto running = Start(compare);
  for (const Stopwatch watch; watch.seconds() < kTimeout && !IsRun("c/local-sgd");) SleepFor(0.01);
  running->Kill(SIGINT);
  const Outcome stopped = running->Wait(kTimeout);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_NE(
      stopped.err.find("continue with: trireme compare iris --strategies allreduce,local-sgd"),
      stopped.err.npos)
      << stopped.err;
  ASSERT_TRUE(IsDone("c/allreduce"));
  const auto first = std::filesystem::last_write_time(At("c/allreduce/summary.json"));
  Refuse(compare + Words{"--seed", "7"}, 2, {"another comparison", "--out"});
  Succeed(compare);
  EXPECT_EQ(std::filesystem::last_write_time(At("c/allreduce/summary.json")), first);
  // Nothing was evaluated before the end: the final value is drawn.
  const Json all = Compared("c");
  for (const Json& run : all.At("runs").Items()) {
    EXPECT_TRUE(run.At("points").Items()[0].At("test_loss").IsNull());
    EXPECT_GT(run.At("points").Items()[2].At("test_loss").AsDouble(), 0);
  }
  EXPECT_EQ(Read("c/page.html").find("no values"), std::string::npos);
}

TEST_F(CompareTest, RefusesWhatMakesNoSense) {
  Refuse({"compare"}, 2, {"--strategies"});
  Write("full/x", "");
  Refuse({"compare", "--strategies", "allreduce", "--out", "full"}, 2,
         {"full", "not a comparison"});
  Refuse({"compare", "--strategies", "allreduse"}, 2, {"allreduse", "allreduce"});
  Refuse({"compare", "--strategies", "allreduce,allreduce"}, 2, {"twice"});
  Refuse({"compare", "--strategies", "allreduce", "--slow", "4:3x"}, 2, {"--slow", "4 ranks"});
  Refuse({"compare", "--strategies", "allreduce", "--link", "fast"}, 2, {"1Gbit/s,5ms"});
  Refuse({"compare", "--strategies", "allreduce", "--link", "1GB/s", "--transport", "shm"}, 2,
         {"--link", "shm"});
  Refuse({"compare", "--strategies", "allreduce", "--for", "easgd:strategy.period=2"}, 2,
         {"--for", "easgd"});
}

}  // namespace
}  // namespace trireme::whole
