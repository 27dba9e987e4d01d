// Searches for settings, by whole runs: killed, parallel, refused.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>

#include "base/clock.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

namespace fs = std::filesystem;

class TuneRunTest : public WholeTest {
 protected:
  TuneRunTest() {
    std::string rows = "x,kind,y\n";
    for (int i = 0; i < 60; ++i) {
      const double x = (i * 37 % 60) / 20.0;
      rows += fmt::format("{},{},{}\n", x, i % 2 ? "a" : "b", (i % 2 ? 2 : -1) * x + 0.25);
    }
    Write("t.csv", rows);
  }

  // A step takes 5 ms, so that there is a middle to kill it in.
  Words Tune(const std::string& out) const {
    return {"tune", "--data", "csv:t.csv",          "--steps",  "30", "--batch", "16", "--threads",
            "1",    "--set",  "emulate.step_ms=10", "--trials", "6",  "--out",   out};
  }

  size_t Done(const std::string& out) const {
    size_t done = 0;
    if (!fs::exists(At(out + "/rung-1/runs"))) return 0;
    for (const auto& entry : fs::directory_iterator(At(out + "/rung-1/runs"))) {
      done += fs::exists(entry.path() / "summary.json");
    }
    return done;
  }

  // The table that it prints.
  static std::string Table(const Outcome& outcome) {
    const size_t at = outcome.out.find("\ntrial "), end = outcome.out.find("best.toml");
    return at < end && end != outcome.out.npos ? outcome.out.substr(at, end - at) : "";
  }
};

TEST_F(TuneRunTest, KilledTwiceItGivesTheTableOfAnUndisturbedSearch) {
  const std::string whole = Table(Succeed(Tune("a")));
  EXPECT_NE(whole.find("test RMSE"), whole.npos) << whole;
  EXPECT_NE(whole.find("best"), whole.npos) << whole;
  // In the range test, and among the trials.
  for (const size_t kill_at : {size_t{0}, size_t{2}}) {
    auto running = Start(Tune("b"));
    for (const Stopwatch watch; watch.seconds() < kTimeout && !running->Over(); SleepFor(0.01)) {
      if (kill_at > 0 ? Done("b") >= kill_at : fs::exists(At("b/range/metrics.jsonl"))) break;
    }
    running->Kill(SIGKILL);
    running->Wait(kTimeout);
    EXPECT_LT(Done("b"), 6u);
    EXPECT_FALSE(fs::exists(At("b/tune.json")));
  }
  EXPECT_EQ(Table(Succeed(Tune("b"))), whole);
  EXPECT_EQ(Read("b/tune.csv"), Read("a/tune.csv"));
  EXPECT_EQ(Read("b/best.toml"), Read("a/best.toml"));
  Refuse(Tune("b") + Words{"--seed", "7"}, 2, {"another search", "--out"});

  // The best recipe trains to what its trial reached.
  Succeed({"train", "b/best.toml", "--quiet", "--out", "r"});
  const Json json = ParseJson(Read("b/tune.json"), "tune");
  const Json& best = json.At("trials").Items()[size_t(json.At("best").AsInt() - 1)];
  EXPECT_EQ(Number("r", "test_rmse"), best.At("test_rmse").AsDouble());
  for (const Json& trial : json.At("trials").Items()) {
    EXPECT_GE(trial.At("test_rmse").AsDouble(), best.At("test_rmse").AsDouble());
  }
  EXPECT_NE(Read("b/page.html").find("Training loss over the learning rate"), std::string::npos);
  Succeed({"report", "b"});

  // Who takes a rate far above what the range test found is told, and nobody else.
  const Words far = {"train", "b/recipe.toml", "--steps", "1", "--lr", "1e4", "--out"};
  const std::string said = Run(far + Words{"s"}, kTimeout).err;
  EXPECT_NE(said.find("far above what the range test in "), said.npos) << said;
  EXPECT_NE(said.find("; try --lr "), said.npos) << said;
  for (const Words& other : {Words{"--model", "mlp:*-7-*"}, Words{"--optimizer", "adam"}}) {
    const std::string err = Run(far + Words{"t" + other[1].substr(0, 1)} + other, kTimeout).err;
    EXPECT_EQ(err.find("range test"), err.npos) << err;
  }
}

TEST_F(TuneRunTest, TrialsAtOnceGiveTheSameTable) {
  const Words words = {"tune",     "iris",
                       "--steps",  "30",
                       "--trials", "4",
                       "--vary",   "optimizer.lr=0.001..0.1:log",
                       "--vary",   "trainer.batch=8,16",
                       "--set",    "data.validation_fraction=0.2",
                       "--out"};
  const std::string one = Table(Succeed(words + Words{"a"}));
  EXPECT_NE(one.find("validation accuracy"), one.npos) << one;
  EXPECT_EQ(Table(Succeed(words + Words{"b", "--parallel", "2"})), one);
}

TEST_F(TuneRunTest, WithoutTrialsTheRangeTestIsAll) {
  const Outcome run = Succeed({"tune", "--data", "csv:t.csv", "--out", "a"});
  EXPECT_NE(run.out.find("the loss is lowest at a rate of "), run.out.npos) << run.out;
  EXPECT_EQ(Done("a"), 0u);
  const double rate =
      ParseJson(Read("a/tune.json"), "tune").At("range").At("suggestion").AsDouble();
  EXPECT_NE(Read("a/best.toml").find(fmt::format("lr = {}\n", rate)), std::string::npos) << rate;
}

TEST_F(TuneRunTest, RefusesWhatCannotBeSearched) {
  Refuse({"tune", "iris", "--vary", "optimizer.lr=0.1..1"}, 2, {"--trials"});
  Refuse({"tune", "iris", "--trials", "0"}, 2, {"--trials"});
  Refuse({"tune", "iris", "--trials", "2", "--vary", "optimizer.rl=0.1..1"}, 2, {"optimizer.lr"});
  Refuse({"tune", "iris", "--trials", "2", "--vary", "optimizer.lr=1..0.1"}, 2, {"LOW..HIGH"});
  Refuse({"tune", "iris", "--trials", "2", "--lr", "1", "--vary", "optimizer.lr=0.1..1"}, 2,
         {"also set"});
  Refuse({"tune", "iris", "--optimizer", "lbfgs"}, 2, {"lbfgs", "rate"});
  EXPECT_FALSE(fs::exists(At("runs")));
}

}  // namespace
}  // namespace trireme::whole
