// optimizer.schedule = plateau: the rate falls where evaluations get no better.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

constexpr double kRate = 0.02, kFactor = 0.5;
constexpr int kPatience = 2;

const Words kRun = {"train",
                    "--lr",
                    fmt::format("{}", kRate),
                    "--deterministic",
                    "--set",
                    "trainer.shards=6",
                    "--set",
                    "trainer.evaluate_every=1",
                    "--set",
                    "optimizer.schedule=plateau",
                    "--set",
                    fmt::format("optimizer.decay_factor={}", kFactor),
                    "--set",
                    fmt::format("optimizer.decay_patience={}", kPatience)};
const Words kEpochs = {"--epochs", "30"};

class PlateauTest : public WholeTest {
 protected:
  // The rate of each epoch follows from the evaluations before it; how often it fell.
  int CheckRates(const std::string& out, const char* judged) {
    int falls = 0, flat = 0;
    double best = -1;
    for (const Json& epoch : Epochs(out)) {
      EXPECT_DOUBLE_EQ(epoch.At("lr").AsDouble(), kRate * std::pow(kFactor, falls)) << falls;
      const double accuracy = epoch.At(judged).AsDouble();
      flat = accuracy > best ? 0 : flat + 1;
      best = std::max(best, accuracy);
      if (flat < kPatience) continue;
      ++falls;
      flat = 0;
    }
    return falls;
  }
};

TEST_F(PlateauTest, TheRateFallsWhereTheAccuracyIsNoBetter) {
  const Outcome run = Succeed(kRun + kEpochs + Words{"--out", "test"});
  EXPECT_GE(CheckRates("test", "test_accuracy"), 3);
  EXPECT_NE(run.err.find("the learning rate falls to 0.01: "), run.err.npos) << run.err;
  Succeed(kRun + kEpochs + Words{"--set", "data.validation_fraction=0.2", "--out", "validated"});
  EXPECT_GE(CheckRates("validated", "validation_accuracy"), 3);
}

TEST_F(PlateauTest, BitsDoNotDependOnTheRanks) {
  Succeed(kRun + kEpochs + Words{"--out", "one"});
  int number = 0;
  for (const Words& ranks :
       {Words{"--ranks", "2"}, Words{"--ranks", "3", "--strategy", "sync-ps"},
        Words{"--ranks", "2", "--strategy", "bsp"}, Words{"--ranks", "2", "--transport", "shm"}}) {
    const std::string out = fmt::format("run{}", ++number);
    Succeed(kRun + kEpochs + ranks + Words{"--out", out});
    EXPECT_EQ(Hash(out), Hash("one")) << ranks[1] << " " << ranks.back();
  }
}

TEST_F(PlateauTest, AResumedRunIsTheUndisturbedOne) {
  Succeed(kRun + kEpochs + Words{"--out", "whole"});
  for (const int first : {170, 225, 300}) {
    const std::string out = fmt::format("parts{}", first);
    // Every rank remembers how often the rate fell.
    const Words ranks = first == 300 ? Words{"--ranks", "2"} : Words{};
    Succeed(kRun + ranks + Words{"--steps", std::to_string(first), "--out", out});
    Succeed(Words{"train", "--resume", out, "--epochs", "30"} + ranks);
    EXPECT_EQ(Hash(out), Hash("whole")) << first;
    CheckRates(out, "test_accuracy");
  }
}

TEST_F(PlateauTest, IsRefusedWhereNobodyEvaluatesInStep) {
  for (const std::string strategy : {"easgd", "downpour"}) {
    Refuse({"train", "--set", "optimizer.schedule=plateau", "--ranks", "3", "--strategy", strategy,
            "--out", "x"},
           2, {"plateau", strategy, "use cosine"});
  }
  Refuse(With(kRun, {"--set", "trainer.evaluate_every=0"}) + Words{"--out", "x"}, 2,
         {"plateau", "trainer.evaluate_every"});
  EXPECT_FALSE(Exists(At("x")));
}

}  // namespace
}  // namespace trireme::whole
