// Whole runs of replicas that are not equal in every step: hogwild, local-sgd, federated.
#include <csignal>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "record/safetensors.h"
#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

class ReplicasTest : public RanksTest, public testing::WithParamInterface<Transport> {
 protected:
  // How often each position of each epoch was trained on, by all workers: "epoch,position".
  std::map<std::string, int> ReadUses(const std::string& folder) {
    std::map<std::string, int> uses;
    for (const auto& file : std::filesystem::directory_iterator(At(folder))) {
      for (const std::string& line : Split(ReadFile(file.path()), '\n')) {
        const std::vector<std::string> fields = Split(line, ',');
        if (fields.size() == 4 && fields[0] != "step") ++uses[fields[1] + "," + fields[2]];
      }
    }
    return uses;
  }

  void ExpectEachOnce(const std::map<std::string, int>& uses, size_t positions) {
    EXPECT_EQ(uses.size(), positions);
    for (const auto& [position, count] : uses) EXPECT_EQ(count, 1) << position;
  }
};

const Words kSmall = {"--data", "synthetic:8x8x1:5:1200",      "--model",   "mlp:64-32-5",
                      "--set",  "optimizer.schedule=constant", "--threads", "1",
                      "--quiet"};
const Words kHogwild =
    Words{"train", "--strategy",          "hogwild", "--batch", "30", "--lr", "0.05",
          "--set", "optimizer.momentum=0"} +
    kSmall;
const Words kLocalSgd = Words{"train", "--strategy", "local-sgd", "--batch",          "24",
                              "--lr",  "0.02",       "--set",     "strategy.period=7"} +
                        kSmall;

using HogwildTest = ReplicasTest;

TEST_P(HogwildTest, UsesEveryPositionOnceInEachEpoch) {
  TrainRanks(GetParam(), 3,
             kHogwild + Words{"--epochs", "4", "--out", "a", "--set", "data.ledger=ledger"});
  ExpectEachOnce(ReadUses("ledger"), 4 * 1200);
  EXPECT_EQ(Epochs("a").size(), 4u);
  EXPECT_EQ(Number("a", "updates"), 4 * 120);
  EXPECT_EQ(Number("a", "samples"), 4 * 1200);
  const std::vector<Json> lines = Epochs("a");
  for (size_t epoch = 0; epoch < 4; ++epoch) {  // each worker's, until then
    int64_t samples = 0;
    for (const Json& worker : lines[epoch].At("clients").Items()) {
      samples += worker.At("samples").AsInt();
      EXPECT_GE(worker.At("staleness_max").AsInt(), worker.At("staleness_mean").AsDouble());
    }
    EXPECT_EQ(samples, int64_t(epoch + 1) * 1200);
  }
  EXPECT_GT(Number("a", "test_accuracy"), 0.5);
}

TEST_P(HogwildTest, GoesOnAfterASignalWithThePositionsThatAreLeft) {
  auto running =
      StartRanks(GetParam(), 3,
                 kHogwild + Words{"--epochs", "100000", "--out", "a", "--set",
                                  "trainer.checkpoint_steps=30", "--set", "data.ledger=ledger"});
  ASSERT_TRUE(AwaitStep(*running, "a", 100)) << running->err();
  running->Kill(SIGTERM);
  const Outcome stopped = running->Wait(kTimeout);
  EXPECT_EQ(stopped.exit_code, 143) << stopped.err;
  // In the middle of an epoch; on two ranks to the end of the next but one.
  const int64_t epochs = SavedStep("a") / 40 + 2;
  TrainRanks(GetParam(), 2,
             {"train", "--resume", "a", "--epochs", std::to_string(epochs), "--quiet"});
  ExpectEachOnce(ReadUses("ledger"), size_t(epochs) * 1200);
}

TEST_P(HogwildTest, AKilledRankEndsTheJobAndItsCheckpointGoesOn) {
  if (GetParam() == "threads") GTEST_SKIP() << "one process";
  auto running = StartRanks(
      GetParam(), 3,
      kHogwild + Words{"--epochs", "100000", "--out", "a", "--set", "trainer.checkpoint_steps=30"});
  ASSERT_TRUE(AwaitStep(*running, "a", 60)) << running->err();
  const std::vector<pid_t> processes = AwaitRanks(*running, 3);
  ASSERT_EQ(processes.size(), 3u) << running->err();
  kill(processes[1], SIGKILL);
  const Outcome lost = running->Wait(kTimeout);
  EXPECT_EQ(lost.exit_code, 1) << lost.err;
  EXPECT_EQ(FirstNamed(lost.err), 1) << lost.err;
  EXPECT_EQ(Leftovers(Now() + 40), "");
  const int64_t epochs = SavedStep("a") / 40 + 2;
  TrainRanks(GetParam(), 3,
             {"train", "--resume", "a", "--epochs", std::to_string(epochs), "--quiet"});
  EXPECT_EQ(int64_t(Number("a", "epochs")), epochs);
}

INSTANTIATE_TEST_SUITE_P(All, HogwildTest, testing::ValuesIn(Transports(SharesMemory)),
                         TransportName);

using LocalSgdTest = ReplicasTest;

// What travels is added in the order of ranks, so the way does not change a bit.
TEST_P(LocalSgdTest, HasTheSameBitsOnEveryTransport) {
  if (NeedsMpirun(GetParam()) && !HasMpi()) GTEST_SKIP() << "no MPI here";
  const Words words = kLocalSgd + Words{"--epochs", "2", "--set", "strategy.outer_momentum=0.3"};
  TrainRanks("threads", 3, words + Words{"--out", "a"});
  TrainRanks(GetParam(), 3, words + Words{"--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
  EXPECT_GT(Number("a", "test_accuracy"), 0.5);
}

INSTANTIATE_TEST_SUITE_P(All, LocalSgdTest, testing::ValuesIn(Transports(ManyProcesses)),
                         TransportName);

// Checkpoints fall due every 10 steps and are made at meetings, every 7.
TEST_F(RanksTest, LocalSgdGoesOnFromItsLastMeetingToTheSameBits) {
  const Words words = kLocalSgd + Words{"--steps", "200",
                                        "--set",   "trainer.checkpoint_steps=10",
                                        "--set",   "strategy.outer_momentum=0.5"};
  TrainRanks("shm", 3, words + Words{"--out", "whole"});
  auto running =
      StartRanks("shm", 3, words + Words{"--out", "parts", "--set", "emulate.step_ms=10"});
  ASSERT_TRUE(AwaitStep(*running, "parts", 50)) << running->err();
  running->Kill(SIGKILL);
  running->Wait(kTimeout);
  EXPECT_EQ(SavedStep("parts") % 7, 0);
  TrainRanks("threads", 3, {"train", "--resume", "parts", "--quiet", "--set", "emulate.step_ms=0"});
  EXPECT_EQ(Hash("parts"), Hash("whole"));
}

// Pixels as they are: behind the first layer the variance is far below 1, where it begins. An
// evaluation takes the root of it.
TEST_F(RanksTest, FederatedMomentumKeepsEveryVariancePositive) {
  TrainRanks("threads", 3,
             Words{"train", "--strategy", "federated", "--batch", "24", "--lr", "0.02", "--epochs",
                   "1", "--out", "a"} +
                 kSmall +
                 Words{"--set", "model.norm=batch", "--set", "data.normalize=none", "--set",
                       "strategy.period=20", "--set", "strategy.outer_momentum=0.9"});
  const SafetensorsReader model(At(Latest("a") + "/model.safetensors"));
  int variances = 0;
  for (const TensorInfo& tensor : model.tensors()) {
    if (!tensor.name.ends_with("running_var")) continue;
    std::vector<float> values(tensor.count);
    model.Read(tensor, values);
    for (const float value : values) EXPECT_GT(value, 0) << tensor.name;
    variances += int(values.size());
  }
  EXPECT_EQ(variances, 32);
}

}  // namespace
}  // namespace trireme::whole
