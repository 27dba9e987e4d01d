// Cross-validation of whole runs: killed, stopped, several at once, refused.
#include <csignal>
#include <filesystem>
#include <map>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

namespace fs = std::filesystem;

class FoldsTest : public WholeTest {
 protected:
  const Words kFolds = {"train",     "iris", "--folds", "4",
                        "--epochs",  "12",   "--set",   "trainer.checkpoint_steps=40",
                        "--threads", "1",    "--out",   "f"};

  // The folds that are done, with when their summaries were written.
  std::map<std::string, fs::file_time_type> Done() const {
    std::map<std::string, fs::file_time_type> done;
    for (int fold = 1; fold <= 4; ++fold) {
      const std::string name = "fold-" + std::to_string(fold);
      std::error_code gone;
      const auto when = fs::last_write_time(At("f/" + name + "/summary.json"), gone);
      if (!gone) done[name] = when;
    }
    return done;
  }

  void ExpectSameResult(const Json& a, const Json& b) {
    for (const char* key : {"mean", "deviation", "confusion", "per_class_auc", "roc", "samples",
                            "test_accuracy", "test_loss"}) {
      EXPECT_EQ(a.At(key).Text(), b.At(key).Text()) << key;
    }
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(a.At("runs").Items()[i].At("parameters_sha256").AsString(),
                b.At("runs").Items()[i].At("parameters_sha256").AsString());
    }
  }
};

TEST_F(FoldsTest, KilledAndStartedAgainItEndsAsIfNothingHadHappened) {
  const Outcome whole = Succeed(kFolds);
  const Json undisturbed = Summary("f");
  EXPECT_EQ(undisturbed.At("samples").AsInt(), 150);
  for (const char* part : {"mean", "deviation", "test accuracy", "AUC", "all folds together"}) {
    EXPECT_NE(whole.out.find(part), whole.out.npos) << whole.out;
  }
  EXPECT_NE(Read("f/page.html").find("4-fold cross-validation"), std::string::npos);
  Succeed({"report", "f"});
  // A fold is a run like any other.
  const Json one = ParseJson(Succeed({"eval", "f/fold-2", "--json"}).out, "eval");
  EXPECT_EQ(one.At("confusion").Text(), Summary("f/fold-2").At("confusion").Text());

  fs::rename(At("f"), At("before"));
  const Words slow = kFolds + Words{"--set", "emulate.step_ms=5"};
  for (const size_t kill_at : {1, 2}) {
    auto running = Start(slow);
    for (const Stopwatch watch; watch.seconds() < kTimeout && Done().size() < kill_at;) {
      if (running->Over()) break;
      SleepFor(0.01);
    }
    AwaitStep(*running, "f/fold-" + std::to_string(kill_at + 1), 40);
    running->Kill(SIGKILL);
    running->Wait(kTimeout);
    EXPECT_GE(Done().size(), kill_at);
  }
  const auto before = Done();
  Succeed(slow);
  for (const auto& [name, when] : before) EXPECT_EQ(Done()[name], when) << name << " ran twice";
  ExpectSameResult(Summary("f"), undisturbed);
  Refuse(slow + Words{"--seed", "7"}, 2, {"another cross-validation", "seed", "--out"});
}

TEST_F(FoldsTest, SeveralAtOnceGiveTheSame) {
  Succeed(kFolds + Words{"--quiet"});
  fs::rename(At("f"), At("one"));
  const Outcome run = Succeed(kFolds + Words{"--parallel", "3", "--json"});
  ExpectSameResult(ParseJson(run.out, "folds"), Summary("one"));
  ExpectSameResult(Summary("f"), Summary("one"));
}

TEST_F(FoldsTest, ASignalEndsTheFoldsAndTheyGoOnLater) {
  const Words slow = kFolds + Words{"--set", "emulate.step_ms=5", "--parallel", "2"};
  auto running = Start(slow);
  AwaitStep(*running, "f/fold-1", 40);
  running->Kill(SIGTERM);
  const Outcome stopped = running->Wait(kTimeout);
  if (stopped.exit_code != 0) {  // a machine that is busy elsewhere may let it end before
    EXPECT_EQ(stopped.exit_code, 143) << stopped.err;
    EXPECT_NE(stopped.err.find("continue with: trireme train iris --folds 4"), stopped.err.npos)
        << stopped.err;
    EXPECT_FALSE(fs::exists(At("f/summary.json")));
  }
  Succeed(slow);
  EXPECT_EQ(Summary("f").At("samples").AsInt(), 150);
}

TEST_F(FoldsTest, RefusesWhatMakesNoSense) {
  Refuse({"train", "--folds", "1"}, 2, {"--folds", "at least 2"});
  Refuse({"train", "--folds", "151"}, 2, {"151", "150 samples"});
  Refuse({"train", "--folds", "x"}, 2, {"--folds", "number"});
  Refuse({"train", "--parallel", "2"}, 2, {"--folds"});
  Refuse({"train", "--folds", "5", "--set", "data.test_fraction=0.3"}, 2, {"test_fraction"});
  Refuse({"train", "--folds", "5", "--resume", "f"}, 2, {"f"});
  Refuse({"train", "--folds", "5", "--self-test"}, 2, {"--self-test"});
  Refuse({"train", "--folds", "5", "--trace", "t.json"}, 2, {"record.trace"});
  Refuse({"train", "--folds", "3", "--steps", "9", "--lr", "-1", "--out", "g"}, 2, {"lr"});
  Succeed({"train", "--folds", "5", "--dry-run"});  // the plan of one of them
  EXPECT_FALSE(fs::exists(At("runs")));
  // One fold by itself, for a job of its own.
  Succeed({"train", "--set", "data.folds=5", "--set", "data.fold=3", "--steps", "9", "--quiet",
           "--out", "one"});
  Refuse({"train", "--resume", "one", "--set", "data.fold=2", "--steps", "20"}, 2, {"data.fold"});
}

}  // namespace
}  // namespace trireme::whole
