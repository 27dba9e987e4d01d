// trainer.ema: what is evaluated and saved is an average of the weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "record/safetensors.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

constexpr double kDecay = 0.9;

const Words kRun = {
    "train",          "--set", "optimizer.schedule=constant", "--set", "trainer.shards=6",
    "--deterministic"};
const Words kAverage = {"--set", fmt::format("trainer.ema={}", kDecay)};

class EmaTest : public WholeTest {
 protected:
  // All values of a checkpoint's model.
  std::vector<float> Model(const std::string& folder) {
    const SafetensorsReader reader(folder + "/model.safetensors");
    std::vector<float> all;
    for (const TensorInfo& tensor : reader.tensors()) {
      std::vector<float> values(tensor.count);
      reader.Read(tensor, values);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

// Beside a run without it, whose weights after each step make the same average in double.
TEST_F(EmaTest, TheModelIsTheAverageOfTheWeights) {
  constexpr int kSteps = 14;
  Succeed(kRun + Words{"--steps", "5", "--out", "first"});
  const Words run = kRun + Words{"--init", "first", "--steps", std::to_string(kSteps)};
  Succeed(run + Words{"--out", "plain", "--set", "trainer.checkpoint_steps=1", "--set",
                      "trainer.keep=100"});
  Succeed(run + kAverage + Words{"--out", "average"});
  const auto after = [&](int steps) {
    return Model(At(fmt::format("plain/checkpoints/step-{:08}", steps)));
  };
  const std::vector<float> begun = after(0);
  std::vector<double> want(begun.begin(), begun.end());
  for (int step = 0; step < kSteps; ++step) {
    const double kept = std::min(kDecay, (1.0 + step) / (10.0 + step));
    const std::vector<float> state = after(step + 1);
    for (size_t i = 0; i < want.size(); ++i) want[i] = kept * want[i] + (1 - kept) * state[i];
  }
  const std::vector<float> got = Model(At(Latest("average")));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 2e-6 * (1 + std::fabs(want[i]))) << i;
  }
  EXPECT_NE(got, after(kSteps));
  EXPECT_EQ(Number("average", "train_loss"), Number("plain", "train_loss"));
}

TEST_F(EmaTest, BitsDoNotDependOnTheRanks) {
  const Words run = kRun + kAverage + Words{"--steps", "20"};
  Succeed(run + Words{"--out", "one"});
  int number = 0;
  for (const Words& ranks : {Words{"--ranks", "2"}, Words{"--ranks", "3"},
                             Words{"--ranks", "3", "--strategy", "sync-ps"},
                             Words{"--ranks", "2", "--strategy", "bsp"}}) {
    const std::string out = fmt::format("run{}", ++number);
    Succeed(run + ranks + Words{"--out", out});
    EXPECT_EQ(Hash(out), Hash("one")) << ranks[1] << " " << ranks.back();
  }
}

TEST_F(EmaTest, AResumedRunIsTheUndisturbedOne) {
  const Words run = kRun + kAverage;
  Succeed(run + Words{"--steps", "40", "--out", "whole"});
  for (const int first : {7, 15, 22}) {
    const std::string out = fmt::format("parts{}", first);
    Succeed(run + Words{"--steps", std::to_string(first), "--out", out});
    Succeed({"train", "--resume", out, "--steps", "40"});
    EXPECT_EQ(Hash(out), Hash("whole")) << first;
    EXPECT_EQ(Number(out, "train_loss"), Number("whole", "train_loss")) << first;
  }
}

// The average is beside what is trained, which is as it would be without it.
TEST_F(EmaTest, WithoutItTrainingGoesOnFromTheWeights) {
  Succeed(kRun + Words{"--steps", "25", "--out", "plain"});
  Succeed(kRun + kAverage + Words{"--steps", "10", "--out", "parts"});
  Succeed({"train", "--resume", "parts", "--set", "trainer.ema=0", "--steps", "25"});
  EXPECT_EQ(Hash("parts"), Hash("plain"));
}

TEST_F(EmaTest, IsRefusedWhereWeightsDiffer) {
  for (const std::string strategy : {"easgd", "local-sgd"}) {
    Refuse(
        {"train", "--ranks", "3", "--strategy", strategy, "--set", "trainer.ema=0.9", "--out", "x"},
        2, {"trainer.ema = 0.9", strategy, "use allreduce"});
  }
  Refuse({"train", "--optimizer", "lbfgs", "--set", "trainer.ema=0.9", "--out", "x"}, 2,
         {"trainer.ema = 0.9", "lbfgs"});
  EXPECT_FALSE(Exists(At("x")));
}

}  // namespace
}  // namespace trireme::whole
