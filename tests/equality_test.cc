// The same run on other numbers of ranks and threads.
#include <cmath>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

// Batch-norm, 12 shards, 96 samples a step, a last step of each epoch that is cut short.
const Words kCnn = {
    "train", "--model", "cnn", "--data", "synthetic:28x28x1:10:500", "--batch", "96", "--lr",
    "0.05",  "--steps", "8",   "--set",  "trainer.shards=12",        "--quiet"};

class EqualityTest : public WholeTest {
 protected:
  // Trains and gives the hash.
  std::string Train(const std::string& run, const Words& more) {
    Succeed(kCnn + more + Words{"--out", run});
    return Hash(run);
  }
};

TEST_F(EqualityTest, DeterministicRunsAreEqualForAnyRanks) {
  const std::string one = Train("1", {"--deterministic", "--ranks", "1"});
  for (const std::string ranks : {"2", "3", "4"}) {
    EXPECT_EQ(Train(ranks, {"--deterministic", "--ranks", ranks}), one) << ranks;
    EXPECT_EQ(Number(ranks, "test_loss"), Number("1", "test_loss"));
  }
}

TEST_F(EqualityTest, DeterministicRunsAreEqualForAnyThreads) {
  const std::string one = Train("1", {"--deterministic", "--threads", "1"});
  for (const std::string threads : {"2", "3"}) {
    EXPECT_EQ(Train("a" + threads, {"--deterministic", "--threads", threads}), one);
    EXPECT_EQ(Train("b" + threads, {"--deterministic", "--threads", threads, "--ranks", "2"}), one);
  }
}

// Where the processor has no bf16 this is float32 once more.
TEST_F(EqualityTest, DeterministicRunsInBFloatAreEqualForAnyRanksAndThreads) {
  const Words bf16 = {"--deterministic", "--precision", "bf16-or-f32"};
  const std::string one = Train("1", bf16 + Words{"--threads", "1"});
  EXPECT_EQ(Train("threads", bf16 + Words{"--threads", "3"}), one);
  EXPECT_EQ(Train("ranks", bf16 + Words{"--ranks", "3", "--threads", "2"}), one);
}

// One sample a step: alone a rank forms its gradients in the update; with others, or to clip them,
// it writes them down.
TEST_F(EqualityTest, GradientsThatAreNotWrittenDownChangeNothing) {
  for (const std::string optimizer : {"sgd", "adamw", "lars", "lamb"}) {
    const auto train = [&](const std::string& run, const Words& more) {
      Succeed(Words{"train", "--model", "mlp:100-60-3", "--data", "synthetic:10x10x1:3:200",
                    "--batch", "1", "--steps", "150", "--optimizer", optimizer, "--lr", "0.01",
                    "--deterministic", "--quiet", "--out", optimizer + run} +
              more);
      return Hash(optimizer + run);
    };
    const std::string alone = train("alone", {});
    EXPECT_EQ(train("threads", {"--threads", "2"}), alone);
    EXPECT_EQ(train("clip", {"--set", "trainer.clip=1e30"}), alone);
    EXPECT_EQ(train("ranks", {"--ranks", "2"}), alone);
  }
}

TEST_F(EqualityTest, WithoutTheFlagEqualToRounding) {
  Train("ordered", {"--deterministic"});
  for (const std::string ranks : {"1", "2", "3", "4"}) {
    Train(ranks, {"--ranks", ranks});
    EXPECT_NEAR(Number(ranks, "test_loss"), Number("ordered", "test_loss"), 1e-3) << ranks;
  }
}

TEST_F(EqualityTest, InStepEveryRunRepeatsToTheBit) {
  for (const Words& words : {Words{"--ranks", "3", "--threads", "2"}, Words{"--ranks", "1"}}) {
    const std::string name = words[1];
    EXPECT_EQ(Train("a" + name, words), Train("b" + name, words));
  }
}

// Over all samples of a step batch-norm knows no shards: two workers compute what one does.
// Directly: the rounding of Winograd's convolutions is larger than what is looked for.
TEST_F(EqualityTest, BatchNormOverAllWorkersIsThatOfOne) {
  const Words cnn = {"train",
                     "--model",
                     "cnn",
                     "--data",
                     "synthetic:28x28x1:10:200",
                     "--batch",
                     "96",
                     "--lr",
                     "0.05",
                     "--steps",
                     "3",
                     "--quiet",
                     "--set",
                     "optimizer.schedule=constant"};
  const Words over_all = {"--set", "strategy.sync_batch_norm=true"};
  for (const std::string device : {"cpu", "ref"}) {
    const Words on = {"--device", device, "--set", "engine.winograd=off"};
    Succeed(cnn + on + Words{"--out", device + "-one"});
    Succeed(cnn + on + Words{"--ranks", "2", "--out", device + "-apart"});
    Succeed(cnn + on + over_all +
            Words{"--ranks", "2", "--transport", "shm", "--out", device + "-shm"});
    Succeed(cnn + on + over_all +
            Words{"--ranks", "3", "--strategy", "sync-ps", "--out", device + "-server"});
    const double one = Number(device + "-one", "test_loss");
    EXPECT_NEAR(Number(device + "-shm", "test_loss"), one, 1e-5) << device;
    EXPECT_NEAR(Number(device + "-server", "test_loss"), one, 1e-5) << device;
    EXPECT_GT(std::abs(Number(device + "-apart", "test_loss") - one), 1e-4) << device;
  }
}

TEST_F(EqualityTest, ShardsAndAccumulationAreTheSameCut) {
  Words words = kCnn;
  words.erase(words.begin() + 11, words.begin() + 13);  // without trainer.shards
  Succeed(words + Words{"--deterministic", "--set", "trainer.shards=4", "--out", "a"});
  Succeed(words +
          Words{"--deterministic", "--set", "trainer.accumulate=2", "--ranks", "2", "--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
}

TEST_F(EqualityTest, WithDropoutAndMoreRanksThanShards) {
  const Words words = {
      "train",          "--steps", "40", "--set", "model.dropout=0.3", "--set", "trainer.shards=3",
      "--deterministic"};
  Succeed(words + Words{"--out", "1"});
  for (const std::string ranks : {"2", "3", "5"}) {
    Succeed(words + Words{"--ranks", ranks, "--out", ranks});
    EXPECT_EQ(Hash(ranks), Hash("1"));
  }
}

TEST_F(EqualityTest, ACentreCannotBeDeterministic) {
  Refuse({"train", "--deterministic", "--ranks", "3", "--strategy", "easgd", "--out", "a"}, 2,
         {"trainer.deterministic", "easgd", "allreduce"});
  EXPECT_FALSE(Exists(At("a")));
}

}  // namespace
}  // namespace trireme::whole
