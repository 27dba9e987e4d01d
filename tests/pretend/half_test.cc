// Whole runs in fp16: the loss is scaled, overflows are skipped. On the reference, which rounds
// what lies between layers, and on a device whose work runs late and whose scale the host never
// asks for.
#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "base/text.h"
#include "pretend/runs.h"
#include "record/json.h"

namespace trireme {
namespace {

Recipe SmallRecipe(const char* precision) {
  Recipe recipe;
  recipe.model.name = "mlp:4-7-3";
  recipe.model.norm = "batch";
  recipe.trainer.device = "ref";
  recipe.trainer.precision = precision;
  recipe.trainer.batch = 12;
  recipe.trainer.shards = 4;
  recipe.trainer.steps = 40;
  recipe.trainer.threads = 1;
  recipe.trainer.deterministic = true;
  recipe.optimizer.lr = 0.05;
  return recipe;
}

class HalfRuns : public PretendRuns {
 protected:
  Summary RunOnRef(const std::string& name, const Recipe& recipe) {
    return Run(name, recipe, BackendOf(recipe));
  }

  // Of all lines of metrics of this kind.
  std::vector<double> Numbers(const std::string& name, const std::string& event, const char* key) {
    std::vector<double> numbers;
    for (const std::string& line : Split(ReadFile(folder_ / (name + "/metrics.jsonl")), '\n')) {
      if (line.empty()) continue;
      const Json json = ParseJson(line, name);
      if (json.Find("event")->AsString() != event) continue;
      if (const Json* number = json.Find(key)) numbers.push_back(number->AsDouble());
    }
    return numbers;
  }
};

// 200 steps, the mean loss of each 20.
TEST_F(HalfRuns, LearnAsFloat32Does) {
  Recipe recipe = SmallRecipe("f32");
  recipe.data.source = "synthetic:6x6x1:3:240";
  recipe.model.name = "mlp:36-24-16-3";
  recipe.trainer.deterministic = false;
  recipe.trainer.shards = 0;
  recipe.trainer.batch = 48;
  recipe.trainer.steps = 200;
  recipe.trainer.metrics_steps = 20;
  recipe.optimizer.loss_scale = 4096;  // no step is skipped
  RunOnRef("f32", recipe);
  recipe.trainer.precision = "fp16";
  const Summary half = RunOnRef("fp16", recipe);
  const auto wanted = Numbers("f32", "step", "train_loss");
  const auto got = Numbers("fp16", "step", "train_loss");
  ASSERT_EQ(wanted.size(), 10u);
  ASSERT_EQ(got.size(), 10u);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i] / wanted[i], 1, 0.01) << i;
  EXPECT_NE(got, wanted) << "something is rounded";
  EXPECT_EQ(half.precision, "fp16");
  EXPECT_EQ(half.loss_scale, 4096);
  EXPECT_EQ(half.skipped_steps, 0);
}

TEST_F(HalfRuns, AScaleThatIsTooLargeRecovers) {
  Recipe recipe = SmallRecipe("fp16");
  recipe.optimizer.loss_scale = 2048;
  const Summary usual = RunOnRef("usual", recipe);
  EXPECT_EQ(usual.skipped_steps, 0);
  EXPECT_EQ(usual.loss_scale, 2048);
  recipe.optimizer.loss_scale = 0x1p40;
  recipe.trainer.steps += 40;
  const Summary summary = RunOnRef("large", recipe);
  EXPECT_GE(*summary.skipped_steps, 15);
  EXPECT_LE(*summary.skipped_steps, 40);
  EXPECT_EQ(*summary.loss_scale, std::ldexp(1.0, 40 - int(*summary.skipped_steps)));
  EXPECT_NEAR(*summary.test_loss, *usual.test_loss, 0.3);
  EXPECT_EQ(Numbers("large", "epoch", "skipped_steps").back(), double(*summary.skipped_steps));
  EXPECT_EQ(Numbers("large", "epoch", "loss_scale").back(), *summary.loss_scale);
}

TEST_F(HalfRuns, GrowAfterStepsWithoutAnOverflow) {
  Recipe recipe = SmallRecipe("fp16");
  recipe.optimizer.loss_scale = 4;
  recipe.optimizer.loss_scale_steps = 8;
  const Summary summary = RunOnRef("run", recipe);
  EXPECT_EQ(summary.loss_scale, 4 * 32);
  EXPECT_EQ(summary.skipped_steps, 0);
}

// A power of two as the scale changes no bit of float32, whoever computes.
TEST_F(HalfRuns, TheDeviceGivesTheBitsOfAnUnscaledProcessor) {
  Recipe recipe = SmallRecipe("f32");
  recipe.trainer.device = "cpu";
  const Summary on_cpu = RunOnRef("cpu", recipe);
  EXPECT_FALSE(on_cpu.loss_scale);
  recipe = SmallRecipe("fp16");
  recipe.optimizer.loss_scale = 256;
  for (const char* strategy : {"allreduce", "sync-ps"}) {
    for (const int ranks : {1, 3}) {
      const bool server = strategy == std::string("sync-ps");
      recipe.strategy.name = strategy;
      recipe.transport.ranks = ranks + server;
      const std::string name = strategy + std::to_string(ranks);
      const Summary half = Run(name, recipe, OnPretendedDevice());
      EXPECT_EQ(half.parameters_sha256, on_cpu.parameters_sha256) << name;
      EXPECT_EQ(half.skipped_steps, 0);
      EXPECT_EQ(half.loss_scale, 256);
    }
  }
}

// While the scale falls and while it grows; on the device its gradients overflow above 65504.
TEST_F(HalfRuns, GoOnFromACheckpointToTheSameBits) {
  const auto check = [&](const std::string& name, const MakeBackend& make) {
    Recipe recipe = SmallRecipe("fp16");
    recipe.optimizer.loss_scale = 0x1p30;
    recipe.optimizer.loss_scale_steps = 6;
    const Summary undisturbed = Run(name, recipe, make);
    EXPECT_GT(*undisturbed.skipped_steps, 5);
    for (const int stop : {5, 29}) {
      recipe.trainer.steps = stop;
      recipe.transport.ranks = 2;
      const std::string stopped = name + std::to_string(stop);
      Run(stopped, recipe, make);
      recipe.trainer.steps = 40;
      recipe.transport.ranks = 3;
      const Summary resumed = Run(stopped, recipe, make);
      EXPECT_EQ(resumed.parameters_sha256, undisturbed.parameters_sha256) << stopped;
      EXPECT_EQ(resumed.skipped_steps, undisturbed.skipped_steps);
      EXPECT_EQ(resumed.loss_scale, undisturbed.loss_scale);
    }
  };
  check("ref", BackendOf(SmallRecipe("fp16")));
  check("pretended", OnPretendedDevice());
}

// A float32 run that goes on in fp16 begins with the recipe's scale.
TEST_F(HalfRuns, GoOnFromARunInFloat32) {
  Recipe recipe = SmallRecipe("f32");
  recipe.trainer.steps = 12;
  RunOnRef("run", recipe);
  recipe.trainer.precision = "fp16";
  recipe.trainer.steps = 24;
  recipe.optimizer.loss_scale = 512;
  EXPECT_EQ(RunOnRef("run", recipe).loss_scale, 512);
  recipe.trainer.precision = "f32";
  recipe.trainer.steps = 30;
  EXPECT_FALSE(RunOnRef("run", recipe).loss_scale);
}

TEST_F(HalfRuns, ClientsOfAServerTakeOverflowsAgain) {
  Recipe recipe = SmallRecipe("fp16");
  recipe.trainer.deterministic = false;
  recipe.trainer.shards = 0;
  recipe.trainer.steps = 150;
  recipe.optimizer.loss_scale = 0x1p30;
  recipe.transport.ranks = 3;
  for (const char* strategy : {"easgd", "downpour"}) {
    recipe.strategy.name = strategy;
    const Summary summary = Run(strategy, recipe, OnPretendedDevice());
    EXPECT_EQ(summary.steps, 150);
    EXPECT_GE(*summary.skipped_steps, 10) << strategy;  // one client may be the faster one
    EXPECT_EQ(*summary.skipped_steps, summary.clients.all.overflows);
    EXPECT_EQ(summary.clients.all.refused, 0);
    EXPECT_TRUE(std::isfinite(*summary.test_loss)) << strategy;
  }
}

TEST_F(HalfRuns, WhatCannotScaleIsRefused) {
  Recipe recipe = SmallRecipe("fp16");
  recipe.trainer.device = "cpu";
  EXPECT_THROW(PrepareJob(recipe, OnPretendedDevice()), UsageError);
  recipe.trainer.device = "ref";
  recipe.optimizer.name = "lbfgs";
  EXPECT_THROW(PrepareJob(recipe, OnPretendedDevice()), UsageError);
}

}  // namespace
}  // namespace trireme
