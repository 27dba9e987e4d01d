// Whole runs on a card: skipped where there is none, with the reason.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>

#include "base/text.h"
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
  CardRunsTest() : WholeTest(/*sees_cards=*/true) {}

  void SetUp() override {
    const Json found = ParseJson(Succeed({"doctor", "--json"}).out, "doctor");
    const Json& cuda = found.At("engines").At("cuda");
    if (cuda.At("targets").Items().empty()) GTEST_SKIP() << cuda.At("why_not_bf16").AsString();
  }
};

class CardRanksTest : public CardRunsTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, CardRanksTest, testing::Values("f32", "fp16"),
                         [](const auto& tried) { return std::string(tried.param); });

// In fp16 the first steps are skipped, and the scale grows later on.
TEST_P(CardRanksTest, OneHashForAnyRanksAndAfterAKill) {
  const Words words = kCnn + kOnCard +
                      Words{"--deterministic",
                            "--precision",
                            GetParam(),
                            "--set",
                            "optimizer.loss_scale=1e9",
                            "--set",
                            "optimizer.loss_scale_steps=8",
                            "--set",
                            "trainer.shards=4",
                            "--set",
                            "trainer.checkpoint_steps=5",
                            "--steps",
                            "60",
                            "--out"};
  Succeed(words + Words{"one"});
  EXPECT_EQ(Summary("one").At("device").AsString(), "cuda");
  EXPECT_EQ(Summary("one").At("precision").AsString(), GetParam());
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
  if (GetParam() == std::string("f32")) return;
  EXPECT_GT(Number("one", "skipped_steps"), 2);
  for (const char* key : {"skipped_steps", "loss_scale"}) {
    EXPECT_EQ(Number("killed", key), Number("one", key)) << key;
  }
}

class CardLossTest : public CardRunsTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, CardLossTest, testing::Values("bf16", "fp16"),
                         [](const auto& tried) { return std::string(tried.param); });

// The mean loss of each 20 of 200 steps, with a rate at which it falls to a sixth, not to nothing.
TEST_P(CardLossTest, ItLearnsAsInFloat32) {
  Words words = kCnn + kOnCard;
  std::replace(words.begin(), words.end(), std::string("0.05"), std::string("0.001"));
  const auto losses = [&](const std::string& precision) {
    Succeed(words + Words{"--precision", precision, "--steps", "200", "--set",
                          "trainer.metrics_steps=20", "--set", "optimizer.loss_scale=1024", "--out",
                          precision});
    std::vector<double> found;
    for (const std::string& line : Split(Read(precision + "/metrics.jsonl"), '\n')) {
      if (line.empty()) continue;
      const Json json = ParseJson(line, precision);
      if (json.At("event").AsString() != "step") continue;
      found.push_back(json.At("train_loss").AsDouble());
    }
    return found;
  };
  const auto wanted = losses("f32"), got = losses(GetParam());
  ASSERT_EQ(wanted.size(), 10u);
  ASSERT_EQ(got.size(), 10u);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i] / wanted[i], 1, 0.01) << i;
  EXPECT_NE(got, wanted) << "something is rounded";
  if (GetParam() == std::string("fp16")) {
    EXPECT_EQ(Number("fp16", "skipped_steps"), 0);
  }
}

TEST_F(CardRunsTest, ALossScaleThatIsTooLargeRecovers) {
  Succeed(kCnn + kOnCard +
          Words{"--precision", "fp16", "--set", "optimizer.loss_scale=1099511627776", "--steps",
                "120", "--out", "a"});  // 2^40
  const double skipped = Number("a", "skipped_steps");
  EXPECT_GE(skipped, 10);
  EXPECT_LE(skipped, 40);
  EXPECT_EQ(Number("a", "loss_scale"), std::ldexp(1.0, 40 - int(skipped)));
  EXPECT_GT(Number("a", "test_accuracy"), 0.5);
}

TEST_F(CardRunsTest, ANewRunTakesIt) {
  Words words = kCnn + Words{"--steps", "5", "--out", "a"};
  std::erase(words, "--quiet");
  const std::string err = Succeed(words).err;
  EXPECT_NE(err.substr(0, err.find("epoch")).find("device: cuda:0: "), std::string::npos) << err;
  EXPECT_EQ(Summary("a").At("device").AsString(), "cuda");
}

TEST_F(CardRunsTest, ARunGoesFromProcessorToCardAndBack) {
  Succeed(kCnn + Words{"--steps", "10", "--device", "cpu", "--out", "a"});
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

// All of the way that sums between cards take, with nobody to add to.
TEST_F(CardRunsTest, OneRankSumsByNccl) {
  const Words words =
      kCnn + kOnCard + Words{"--set", "engine.measure=false", "--steps", "30", "--out"};
  Succeed(words + Words{"plain"});
  const Outcome outcome = Run(words + Words{"nccl", "--set", "strategy.algorithm=device", "--set",
                                            "strategy.bucket_mb=0.01"});
  if (outcome.err.find("needs NCCL 2") != std::string::npos) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Hash("nccl"), Hash("plain"));
}

TEST_F(CardRunsTest, RanksThatShareACardSaySo) {
  Words words = kCnn + Words{"--device", "cuda:0", "--steps", "5", "--ranks", "2", "--out", "a"};
  std::erase(words, "--quiet");
  const Outcome outcome = Succeed(words);
  const std::string said = "gradients are summed through the host: ";
  EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
}

// Pictures of bytes, augmented: on the card, on their way to it, and changed by the processor.
TEST_F(CardRunsTest, ResidentSamplesGiveTheHashOfTravellingOnes) {
  for (const auto& [part, count] : {std::pair("train", 700), std::pair("t10k", 90)}) {
    const auto head = [](int dimensions, std::initializer_list<int> sizes) {
      std::string bytes{0, 0, 8, char(dimensions)};
      for (const int size : sizes) bytes += {0, 0, char(size >> 8), char(size & 255)};
      return bytes;
    };
    std::string images = head(3, {count, 13, 17}), labels = head(1, {count});
    for (int i = 0; i < count; ++i) {
      labels += char(i % 5);
      for (int k = 0; k < 13 * 17; ++k) images += char(45 * (i % 5) + (i * 31 + k * 17) % 60);
    }
    Write("set/" + std::string(part) + "-images-idx3-ubyte", images);
    Write("set/" + std::string(part) + "-labels-idx1-ubyte", labels);
  }
  const Words processor = {"train",
                           "--model",
                           "cnn",
                           "--data",
                           "idx:set",
                           "--set",
                           "data.augment=flip,pad-crop,erase",
                           "--batch",
                           "64",
                           "--lr",
                           "0.05",
                           "--deterministic",
                           "--set",
                           "trainer.shards=4",
                           "--epochs",
                           "3"};
  const Words words = processor + kOnCard;
  const Outcome resident = Succeed(words + Words{"--out", "lie"});
  EXPECT_NE(resident.err.find("700 samples"), std::string::npos) << resident.err;
  EXPECT_NE(resident.err.find("lie on cuda:0"), std::string::npos) << resident.err;
  const Outcome travelling =
      Succeed(words + Words{"--set", "engine.samples_mb=0", "--out", "travel"});
  EXPECT_NE(travelling.err.find("samples travel as bytes"), std::string::npos) << travelling.err;
  EXPECT_EQ(Hash("travel"), Hash("lie"));
  EXPECT_EQ(Number("travel", "test_loss"), Number("lie", "test_loss"));
  Succeed(words + Words{"--ranks", "2", "--transport", "shm", "--out", "two"});
  EXPECT_EQ(Hash("two"), Hash("lie"));
  Succeed(processor + Words{"--device", "cpu", "--out", "cpu"});
  EXPECT_NEAR(Number("cpu", "test_loss"), Number("lie", "test_loss"), 0.05);
  EXPECT_GT(Number("lie", "test_accuracy"), 0.9);
}

TEST_F(CardRunsTest, NoMemoryEndsTheRunWithWhatFits) {
  const Outcome outcome =
      Run(kCnn + kOnCard + Words{"--set", "engine.memory_mb=1", "--steps", "1", "--out", "a"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("trainer.accumulate needs less"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace trireme::whole
