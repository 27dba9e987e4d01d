// Whole runs on a device whose memory the host may not touch and whose work runs late: the trainer,
// both strategies and checkpoints meet what a GPU will ask of them.
#include "trainer/train.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "engine/ref/engine.h"
#include "graph/chains_test.h"
#include "pretend/runs.h"
#include "record/checkpoint.h"

namespace trireme {
namespace {

Recipe SmallRecipe() {
  Recipe recipe;
  recipe.model.name = "mlp:4-7-3";
  recipe.model.norm = "batch";
  recipe.trainer.batch = 12;
  recipe.trainer.shards = 4;
  recipe.trainer.steps = 24;  // two epochs and a part of the third
  recipe.trainer.threads = 1;
  recipe.optimizer.lr = 0.05;
  return recipe;
}

class PretendTrain : public PretendRuns {};

TEST_F(PretendTrain, AllReduceGivesTheBitsOfTheProcessor) {
  Recipe recipe = SmallRecipe();
  recipe.trainer.deterministic = true;
  const Summary on_cpu = Run("cpu", recipe, BackendOf(recipe));
  EXPECT_EQ(on_cpu.device_name, "");
  for (const int ranks : {1, 2, 3}) {
    recipe.transport.ranks = ranks;
    const Summary pretended = Run("ranks-" + std::to_string(ranks), recipe, OnPretendedDevice());
    EXPECT_EQ(pretended.parameters_sha256, on_cpu.parameters_sha256) << ranks << " ranks";
    EXPECT_EQ(pretended.test_loss, on_cpu.test_loss);
    EXPECT_EQ(pretended.device_name, "pretend");
    EXPECT_GT(pretended.device_memory_bytes, 0);
  }
}

// The host reads lengths of tensors before it enqueues the rest.
TEST_F(PretendTrain, RulesForLargeBatchesGiveTheBitsOfTheProcessor) {
  for (const std::string optimizer : {"lars", "lamb"}) {
    Recipe recipe = SmallRecipe();
    recipe.trainer.deterministic = true;
    recipe.optimizer.name = optimizer;
    recipe.optimizer.weight_decay = 0.01;
    recipe.trainer.clip = 0.5;
    const Summary on_cpu = Run(optimizer + "-cpu", recipe, BackendOf(recipe));
    for (const int ranks : {1, 2}) {
      recipe.transport.ranks = ranks;
      const std::string name = optimizer + std::to_string(ranks);
      const Summary pretended = Run(name, recipe, OnPretendedDevice());
      EXPECT_EQ(pretended.parameters_sha256, on_cpu.parameters_sha256) << name;
    }
  }
}

// A device may have to cut its work for each bucket that it announces.
TEST_F(PretendTrain, BucketsAreAnnouncedOnlyToWhoListens) {
  Recipe recipe = SmallRecipe();
  recipe.strategy.bucket_mb = 0.0001;  // a layer each
  std::atomic<int> announced = 0;
  Run("alone", recipe, OnPretendedDevice(&announced));
  EXPECT_EQ(announced, 0);
  recipe.transport.ranks = 2;
  Run("two", recipe, OnPretendedDevice(&announced));
  EXPECT_GE(announced, 2 * 24 * 2);
  announced = 0;
  recipe.strategy.name = "local-sgd";
  recipe.trainer.shards = 0;
  Run("local", recipe, OnPretendedDevice(&announced));
  EXPECT_EQ(announced, 0);
}

TEST_F(PretendTrain, SyncPsWithAnyOverlapGivesTheBitsOfTheProcessor) {
  Recipe recipe = SmallRecipe();
  recipe.trainer.deterministic = true;
  const Summary on_cpu = Run("cpu", recipe, BackendOf(recipe));
  recipe.strategy.name = "sync-ps";
  recipe.strategy.bucket_mb = 0.0001;  // a layer each
  recipe.transport.ranks = 3;
  for (const std::string overlap : {"none", "reduce", "broadcast", "both"}) {
    recipe.strategy.overlap = overlap;
    const Summary pretended = Run(overlap, recipe, OnPretendedDevice());
    EXPECT_EQ(pretended.parameters_sha256, on_cpu.parameters_sha256) << overlap;
    EXPECT_EQ(pretended.test_loss, on_cpu.test_loss);
  }
}

// Its sums leave the device in the middle of a shard; RunShard forms them.
TEST_F(PretendTrain, BatchNormOverAllRanksGivesTheBitsOfTheProcessor) {
  Recipe recipe = SmallRecipe();
  recipe.trainer.shards = 0;
  recipe.strategy.sync_batch_norm = true;
  recipe.strategy.algorithm = "ring";
  for (const int ranks : {2, 3}) {
    recipe.transport.ranks = ranks;
    const std::string name = std::to_string(ranks);
    const Summary on_cpu = Run("cpu-" + name, recipe, BackendOf(recipe));
    const Summary pretended = Run("pretended-" + name, recipe, OnPretendedDevice());
    EXPECT_EQ(pretended.parameters_sha256, on_cpu.parameters_sha256) << name << " ranks";
    EXPECT_EQ(pretended.test_loss, on_cpu.test_loss);
  }
}

// One rank, and a leader with one worker: the order of their sums never changes.
TEST_F(PretendTrain, AllSamplesAtOnceGiveTheBitsOfTheProcessor) {
  Recipe recipe = SmallRecipe();
  recipe.optimizer.name = "lbfgs";
  recipe.optimizer.weight_decay = 1e-3;
  recipe.trainer.steps = 6;
  for (const int ranks : {1, 2}) {
    recipe.transport.ranks = ranks;
    const std::string name = std::to_string(ranks);
    const Summary on_cpu = Run("cpu-" + name, recipe, BackendOf(recipe));
    const Summary pretended = Run("pretended-" + name, recipe, OnPretendedDevice());
    EXPECT_EQ(pretended.parameters_sha256, on_cpu.parameters_sha256) << name << " ranks";
    EXPECT_EQ(pretended.test_loss, on_cpu.test_loss);
  }
}

TEST_F(PretendTrain, TheRingAgreesWithTheProcessorToRounding) {
  Recipe recipe = SmallRecipe();
  recipe.transport.ranks = 3;
  const Summary on_cpu = Run("cpu", recipe, BackendOf(recipe));
  const Summary pretended = Run("pretended", recipe, OnPretendedDevice());
  EXPECT_NEAR(*pretended.test_loss, *on_cpu.test_loss, 1e-4);
}

TEST_F(PretendTrain, ACheckpointGoesOnToTheSameBits) {
  Recipe recipe = SmallRecipe();
  recipe.trainer.deterministic = true;
  const Summary undisturbed = Run("undisturbed", recipe, OnPretendedDevice());
  recipe.trainer.steps = 13;
  recipe.transport.ranks = 2;
  Run("stopped", recipe, OnPretendedDevice());
  recipe.trainer.steps = 24;
  recipe.transport.ranks = 3;
  const Summary resumed = Run("stopped", recipe, OnPretendedDevice());
  EXPECT_EQ(resumed.parameters_sha256, undisturbed.parameters_sha256);
}

// An engine that joins chains trains the same run: gradients, layout, checkpoint.
TEST_F(PretendTrain, AChainLeavesTheCheckpointOfItsParts) {
  Recipe recipe = SmallRecipe();
  recipe.data.source = "synthetic:8x8x1:3:48";
  recipe.model.name = "cnn";
  recipe.trainer.steps = 4;
  recipe.trainer.deterministic = true;
  recipe.strategy.bucket_mb = 0.0001;
  const auto by_ref = [](std::vector<Fusion> fusions) {
    return [fusions](const BackendNeeds&) {
      return Backend{.engine = std::make_unique<RefEngine>(fusions)};
    };
  };
  const Summary parts = Run("parts", recipe, by_ref({}));
  recipe.transport.ranks = 2;
  const Summary chains =
      Run("chains", recipe, by_ref({{&kConv2dBatchNormRelu}, {&kNormAndWeightsGrad}}));
  EXPECT_EQ(chains.parameters_sha256, parts.parameters_sha256);
  EXPECT_EQ(chains.test_loss, parts.test_loss);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string path = std::string("checkpoints/latest/") + file;
    EXPECT_EQ(ReadFile(folder_ / ("chains/" + path)), ReadFile(folder_ / ("parts/" + path)))
        << file;
  }
}

TEST_F(PretendTrain, ElasticAveragingLearnsAndResumes) {
  Recipe recipe = SmallRecipe();
  recipe.strategy.name = "easgd";
  recipe.strategy.period = 3;
  recipe.transport.ranks = 3;
  recipe.trainer.shards = 0;
  recipe.trainer.steps = 150;
  Run("easgd", recipe, OnPretendedDevice());
  recipe.trainer.steps = 300;
  const Summary summary = Run("easgd", recipe, OnPretendedDevice());
  EXPECT_EQ(summary.steps, 300);
  EXPECT_GT(*summary.test_accuracy, 0.7);
}

}  // namespace
}  // namespace trireme
