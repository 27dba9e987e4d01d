// Whole runs on a card: skipped where there is none, with the reason.
#include <csignal>
#include <cstdlib>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

// Batch-norm, convolutions, dropout; the last step of an epoch is cut short.
const Words kCnn = {"train",
                    "--model",
                    "cnn",
                    "--data",
                    "synthetic:14x14x1:5:300",
                    "--set",
                    "model.dropout=0.1",
                    "--batch",
                    "32",
                    "--lr",
                    "0.05",
                    "--quiet"};
const Words kOnCard = {"--device", "cuda"};

class CardRunsTest : public WholeTest {
 protected:
  void SetUp() override {
    const Json found = ParseJson(Succeed({"doctor", "--json"}).out, "doctor");
    const Json& cuda = found.At("engines").At("cuda");
    if (cuda.At("targets").Items().empty()) GTEST_SKIP() << cuda.At("why_not_bf16").AsString();
  }
};

TEST_F(CardRunsTest, OneHashForAnyRanksAndAfterAKill) {
  const Words words = kCnn + kOnCard +
                      Words{"--deterministic",
                            "--set",
                            "trainer.shards=4",
                            "--set",
                            "trainer.checkpoint_steps=5",
                            "--steps",
                            "60",
                            "--out"};
  Succeed(words + Words{"one"});
  EXPECT_EQ(Summary("one").At("device").AsString(), "cuda");
  EXPECT_NE(Summary("one").At("device_name").AsString(), "");
  EXPECT_GT(Number("one", "device_memory_bytes"), 0);
  for (const std::string transport : {"threads", "shm", "tcp"}) {
    for (const std::string ranks : {"2", "4"}) {
      const std::string run = transport + ranks;
      Succeed(words + Words{run, "--ranks", ranks, "--transport", transport});
      EXPECT_EQ(Hash(run), Hash("one")) << run;
    }
  }
  auto running = Start(words + Words{"killed", "--ranks", "2", "--transport", "shm"});
  AwaitStep(*running, "killed", 10);
  running->Kill(SIGKILL);
  running->Wait(kTimeout);
  Succeed({"train", "--resume", "killed", "--quiet"});
  EXPECT_EQ(Hash("killed"), Hash("one"));
}

TEST_F(CardRunsTest, ARunGoesFromProcessorToCardAndBack) {
  Succeed(kCnn + Words{"--steps", "10", "--out", "a"});
  Succeed({"train", "--resume", "a", "--steps", "20", "--device", "cuda", "--quiet"});
  const double loss = Number("a", "test_loss");
  const auto evaluate = [&](const Words& more) {
    return ParseJson(Succeed(Words{"eval", "a", "--json"} + more).out, "eval");
  };
  EXPECT_NEAR(evaluate({}).At("test_loss").AsDouble(), loss, 1e-4);
  EXPECT_NEAR(evaluate({"--device", "cpu"}).At("test_loss").AsDouble(), loss, 1e-4);
  setenv("TRIREME_CUDA_PLUGIN", "none.so", 1);  // a machine without cards
  EXPECT_NEAR(evaluate({}).At("test_loss").AsDouble(), loss, 1e-4);
  unsetenv("TRIREME_CUDA_PLUGIN");
  Succeed({"train", "--resume", "a", "--steps", "30", "--device", "cpu", "--quiet"});
  EXPECT_EQ(Summary("a").At("device").AsString(), "cpu");
}

TEST_F(CardRunsTest, OtherStrategiesTrainOnIt) {
  for (const std::string strategy : {"sync-ps", "async-ps", "easgd", "local-sgd"}) {
    Succeed(kCnn + kOnCard +
            Words{"--epochs", "3", "--ranks", "3", "--strategy", strategy, "--out", strategy});
    EXPECT_GT(Number(strategy, "test_accuracy"), 0.5) << strategy;
  }
}

TEST_F(CardRunsTest, NoMemoryEndsTheRunWithWhatFits) {
  const Outcome outcome =
      Run(kCnn + kOnCard + Words{"--set", "engine.memory_mb=1", "--steps", "1", "--out", "a"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("trainer.accumulate needs less"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace trireme::whole
