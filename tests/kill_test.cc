// kill -9 at random moments, resumed until the run is done: the undisturbed run to the bit.
// TRIREME_KILLS in the environment says how often (scripts/soak-kill: 100), TRIREME_SEED when.
#include <csignal>
#include <filesystem>
#include <random>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class KillTest : public WholeTest {
 protected:
  // The disturbed run is the undisturbed one.
  void Compare() {
    EXPECT_EQ(Hash("parts"), Hash("whole"));
    EXPECT_EQ(Number("parts", "epochs"), Number("whole", "epochs"));
    EXPECT_EQ(Number("parts", "train_loss"), Number("whole", "train_loss"));
    const auto parts = Epochs("parts"), whole = Epochs("whole");
    ASSERT_EQ(parts.size(), whole.size());  // no line twice, none missing
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].At("train_loss").AsDouble(), whole[i].At("train_loss").AsDouble());
    }
  }
};

TEST_F(KillTest, AtAnyMomentCostsNothing) {
  const int kills = Wanted("TRIREME_KILLS", 6);
  // 20 steps between checkpoints, 63 in an epoch: some fall together, most do not.
  const Words words = {"train",
                       "--data",
                       "synthetic:8x8x1:5:500",
                       "--model",
                       "mlp:64-32-5",
                       "--batch",
                       "8",
                       "--lr",
                       "0.02",
                       "--set",
                       "model.dropout=0.1",
                       "--set",
                       "trainer.checkpoint_steps=20",
                       "--threads",
                       "1",
                       "--quiet",
                       "--steps"};
  const std::string steps = std::to_string(500 + 200 * kills);
  const double began = Now();
  Succeed(words + Words{steps, "--out", "whole"});
  const double whole_s = Now() - began;

  const int seed = Wanted("TRIREME_SEED", int(std::random_device{}() >> 1));
  SCOPED_TRACE(SeedText(seed));
  std::mt19937 random{unsigned(seed)};
  // Far enough apart to get on, close enough to hit start, steps and writing alike.
  double longest = 2 * whole_s / (kills + 1);
  int done = 0, without_config = 0, finished = 0;
  std::vector<int64_t> at;
  while (done < kills) {
    const bool fresh = !IsRun("parts");
    auto running = Start(fresh ? words + Words{steps, "--out", "parts"}
                               : Words{"train", "--resume", "parts", "--quiet"});
    SleepFor(std::uniform_real_distribution<double>(0, longest)(random));
    running->Kill(SIGKILL);
    const Outcome outcome = running->Wait(kTimeout);
    ASSERT_TRUE(outcome.signal == SIGKILL || outcome.exit_code == 0) << outcome.err;
    if (outcome.exit_code == 0) {  // it was faster: once more, with less patience
      Compare();
      std::filesystem::remove_all(At("parts"));
      longest /= 2;
      ++finished;
      continue;
    }
    without_config += !IsRun("parts");
    ++done;
    const bool saved = Exists(At("parts/checkpoints/latest"));
    at.push_back(saved ? std::stoll(Latest("parts").substr(Latest("parts").size() - 8)) : 0);
  }
  if (!IsRun("parts")) Succeed(words + Words{steps, "--out", "parts"});
  Succeed({"train", "--resume", "parts", "--quiet"});

  Compare();
  std::string moments;
  for (const int64_t step : at) moments += " " + std::to_string(step);
  std::printf("%d kills, %d before the run had a config, of %d runs of %s steps and %.2f s\n", done,
              without_config, finished + 1, steps.c_str(), whole_s);
  std::printf("newest checkpoint after each:%s\n%s undisturbed\n%s resumed\n", moments.c_str(),
              Hash("whole").c_str(), Hash("parts").c_str());
}

}  // namespace
}  // namespace trireme::whole
