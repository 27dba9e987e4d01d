// Samples of bytes on a device that draws them itself: whether they lie there or travel, a run has
// the bits of the processor.
#include <gtest/gtest.h>

#include "data/sources.h"
#include "data/testing.h"
#include "flat/staging.h"
#include "model/resident_set.h"
#include "pretend/runs.h"

namespace trireme {
namespace {

class PretendFeed : public PretendRuns {
 protected:
  // Pictures of `side` pixels in MNIST's format.
  std::string Pictures(uint32_t samples, uint32_t side) {
    for (const auto& [part, count] : {std::pair{"train", samples}, std::pair{"t10k", 20u}}) {
      std::string bytes = SomeBytes(size_t(count) * side * side);
      for (size_t i = 0; i < bytes.size(); i += 5) bytes[i] = char(i % 251);
      data_.Write(std::string(part) + "-images-idx3-ubyte", Idx({count, side, side}, bytes));
      data_.Write(std::string(part) + "-labels-idx1-ubyte", Idx({count}, SomeLabels(count, 3)));
    }
    return "idx:" + data_.path();
  }

  Recipe SmallRecipe() {
    Recipe recipe;
    recipe.data.source = Pictures(60, 9);
    recipe.data.validation_fraction = 0.2;
    recipe.data.augment = "flip,pad-crop,erase";
    recipe.model.name = "cnn";
    recipe.trainer.batch = 12;
    recipe.trainer.shards = 4;
    recipe.trainer.steps = 10;  // two epochs and a part of the third
    recipe.trainer.threads = 1;
    recipe.trainer.deterministic = true;
    recipe.optimizer.lr = 0.05;
    return recipe;
  }

  void ExpectSame(const Summary& got, const Summary& want, const std::string& what) {
    EXPECT_EQ(got.parameters_sha256, want.parameters_sha256) << what;
    EXPECT_EQ(got.test_loss, want.test_loss) << what;
    EXPECT_EQ(got.validation_loss, want.validation_loss) << what;
  }

 private:
  TemporaryFolder data_;
};

TEST_F(PretendFeed, ResidentAndTravellingSamplesGiveTheBitsOfTheProcessor) {
  Recipe recipe = SmallRecipe();
  const Summary on_cpu = Run("cpu", recipe, BackendOf(recipe));
  EXPECT_EQ(Said().find("samples"), std::string::npos) << "a processor computes from values";
  for (const int ranks : {1, 3}) {
    recipe.transport.ranks = ranks;
    recipe.engine.samples_mb = "auto";
    const std::string name = std::to_string(ranks);
    const Summary lie = Run("lie-" + name, recipe, OnPretendedDevice());
    ExpectSame(lie, on_cpu, "resident, ranks " + name);
    recipe.engine.samples_mb = int64_t{0};
    for (const int64_t threads : {0, 2}) {
      recipe.data.threads = threads;
      const Summary travel =
          Run("travel-" + name + "-" + std::to_string(threads), recipe, OnPretendedDevice());
      ExpectSame(travel, on_cpu, "travelling, ranks " + name);
      EXPECT_LT(travel.device_memory_bytes, lie.device_memory_bytes);
    }
  }
  EXPECT_TRUE(Holds(Said(), {"data: 48 samples (3.8 KiB) lie on pretend",
                             "data: samples travel as bytes: 3.8 KiB are more than the 0 B that",
                             "engine.samples_mb = 0"}));
}

TEST_F(PretendFeed, MixedSamplesAreTheSameOnAnyDeviceAndNumberOfRanks) {
  Recipe recipe = SmallRecipe();
  recipe.data.augment = "flip,randaugment,colour-jitter,mixup,cutmix";
  recipe.data.mixup_alpha = 1;
  recipe.data.balance = true;
  recipe.model.smoothing = 0.1f;
  const Summary on_cpu = Run("cpu", recipe, BackendOf(recipe));
  for (const int ranks : {1, 2, 3}) {
    recipe.transport.ranks = ranks;
    const std::string name = std::to_string(ranks);
    ExpectSame(Run("cpu-" + name, recipe, BackendOf(recipe)), on_cpu, "cpu, ranks " + name);
    ExpectSame(Run("pretend-" + name, recipe, OnPretendedDevice()), on_cpu, "ranks " + name);
  }
  EXPECT_TRUE(Holds(Said(), {"data: samples travel as float32: two are mixed before"}));
}

TEST_F(PretendFeed, OtherStrategiesAreFedLikewise) {
  Recipe recipe = SmallRecipe();
  const Summary on_cpu = Run("cpu", recipe, BackendOf(recipe));
  recipe.transport.ranks = 3;
  recipe.strategy.name = "sync-ps";
  ExpectSame(Run("sync-ps", recipe, OnPretendedDevice()), on_cpu, "sync-ps");
  recipe.trainer.deterministic = false;
  recipe.trainer.shards = 0;
  for (const std::string name : {"local-sgd", "easgd"}) {
    recipe.strategy.name = name;
    EXPECT_EQ(Run(name, recipe, OnPretendedDevice()).steps, 10) << name;
  }
  recipe.strategy.name = "allreduce";
  recipe.transport.ranks = 1;
  recipe.optimizer.name = "lbfgs";
  recipe.data.augment = "none";
  recipe.trainer.steps = 4;
  const Summary whole = Run("lbfgs-cpu", recipe, BackendOf(recipe));
  ExpectSame(Run("lbfgs", recipe, OnPretendedDevice()), whole, "lbfgs");
}

TEST_F(PretendFeed, ARunGoesOnWhereverItsSamplesLie) {
  Recipe recipe = SmallRecipe();
  const Summary undisturbed = Run("undisturbed", recipe, OnPretendedDevice());
  recipe.trainer.steps = 5;
  Run("stopped", recipe, OnPretendedDevice());
  recipe.trainer.steps = 7;
  recipe.engine.samples_mb = int64_t{0};
  recipe.transport.ranks = 2;
  Run("stopped", recipe, OnPretendedDevice());
  recipe.trainer.steps = 10;
  recipe.engine.samples_mb = "auto";
  ExpectSame(Run("stopped", recipe, OnPretendedDevice()), undisturbed, "resumed");
}

TEST_F(PretendFeed, SetsThatAreTooLargeTravel) {
  Recipe recipe = SmallRecipe();
  recipe.data.source = Pictures(1500, 28);
  recipe.data.validation_fraction = 0;
  recipe.trainer.steps = 3;
  const Summary lie = Run("lie", recipe, OnPretendedDevice());
  recipe.engine.samples_mb = 1;
  ExpectSame(Run("travel", recipe, OnPretendedDevice()), lie, "too large");
  EXPECT_TRUE(Holds(Said(), {"data: 1,500 samples (1.1 MiB) lie on pretend",
                             "1.1 MiB are more than the 976.6 KiB that may lie on pretend"}));
}

// A quarter of what is free, divided by the ranks: the device has 512 MiB.
TEST_F(PretendFeed, WhatLiesOnADevice) {
  const DataSet data = OpenData({.source = Pictures(1500, 28)}, 1);
  PretendDevice device;
  PretendEngine engine(device, 1);
  EXPECT_TRUE(PlaceSamples(*data.train, engine, "auto", 100).set);
  const Residence shared = PlaceSamples(*data.train, engine, "auto", 200);
  EXPECT_FALSE(shared.set);
  EXPECT_TRUE(Holds(shared.text, {"engine.samples_mb", "a quarter", "200 ranks"}));
  EXPECT_TRUE(PlaceSamples(*data.train, engine, 2, 200).set);
  const DataSet floats = OpenData({.source = "iris"}, 1);
  EXPECT_TRUE(Holds(PlaceSamples(*floats.train, engine, "auto", 1).text, {"float32"}));
  HostDevice host;
  CpuEngine cpu(host, 1);
  EXPECT_EQ(PlaceSamples(*data.train, cpu, "auto", 1).text, "");

  const ResidentSet set(*data.train, device);
  const auto queue = device.NewQueue();
  std::vector<float> got(set.bytes().size);
  flat::GetNow(*queue, set.bytes(), got);
  std::vector<uint8_t> sample(28 * 28);
  for (int64_t i = 0; i < data.train->size(); ++i) {
    int32_t label = 0;
    data.train->GatherBytes({&i, 1}, {}, sample.data(), &label, nullptr);
    const auto* const begin = reinterpret_cast<const uint8_t*>(got.data()) + i * 28 * 28;
    ASSERT_TRUE(std::equal(sample.begin(), sample.end(), begin)) << i;
  }
}

}  // namespace
}  // namespace trireme
