// Devices that add up gradients among themselves: the promises of a group, and whole runs whose
// ranks have one, also when a rank is lost.
#include "pretend/group.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>

#include "base/files.h"
#include "flat/group_check.h"
#include "pretend/engine.h"
#include "record/json.h"
#include "trainer/train.h"
#include "transport/forked.h"

namespace trireme {
namespace {

TEST(PretendGroup, KeepsItsPromises) {
  for (const int ranks : {1, 2, 5}) {
    PretendWires wires;
    std::deque<PretendDevice> devices(static_cast<size_t>(ranks));
    std::vector<std::unique_ptr<DeviceGroups>> groups;
    std::vector<GroupMember> members;
    for (int r = 0; r < ranks; ++r) {
      PretendDevice& device = devices[size_t(r)];
      groups.push_back(wires.Groups(device, r));
      members.push_back({device, *groups.back()});
    }
    CheckDeviceGroup(members);
    EXPECT_GT(wires.sums(), 0);
  }
}

constexpr int kSteps = 15;  // an epoch and a part of the second

Recipe SmallRecipe(int ranks) {
  Recipe recipe;
  recipe.model.name = "mlp:4-7-3";
  recipe.model.norm = "batch";
  recipe.trainer.batch = 12;
  recipe.trainer.steps = kSteps;
  recipe.trainer.threads = 1;
  recipe.optimizer.lr = 0.05;
  recipe.strategy.bucket_mb = 0.0001;  // a layer each
  recipe.transport.ranks = ranks;
  return recipe;
}

class PretendGroupTrain : public testing::Test {
 protected:
  // Ranks with devices of their own, or that share so many.
  static MakeBackend OnWires(PretendWires& wires, int devices = 1 << 10) {
    return [&wires, devices](const BackendNeeds& needs) {
      if (!needs.trains) return HostEngine().make(Precision::kF32, {}, needs);
      Backend backend;
      auto device = std::make_unique<PretendDevice>();
      backend.engine = std::make_unique<PretendEngine>(*device, needs.threads);
      backend.groups = wires.Groups(*device, needs.place % devices);
      backend.device = std::move(device);
      return backend;
    };
  }

  // Trains in the folder `name` (goes on if it is there). The hash of the weights.
  std::string Run(const std::string& name, const Recipe& recipe, const MakeBackend& make_backend) {
    const std::string path = folder_ / name;
    RunDirectory directory =
        Exists(path) ? RunDirectory::Resume(path) : RunDirectory::Create(path, "");
    const Job job = PrepareJob(recipe, make_backend);
    const int fd = open((folder_ / "log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    {
      LogOutput output(fd);
      Progress progress(ProgressStyle::kQuiet, output);
      const Log log(output);
      TransportOptions transport = job.recipe.transport;
      Launcher launcher(transport, true, {});
      const auto report = [](const Outcome&) {};
      Train(job, {.directory = &directory,
                  .progress = progress,
                  .signals = signals_,
                  .log = log,
                  .launcher = launcher,
                  .report = report});
    }
    close(fd);
    const std::string file = path + "/summary.json";
    return ParseJson(ReadFile(file), file).At("parameters_sha256").AsString();
  }

  std::string ErrorOf(const std::string& name, const Recipe& recipe, const MakeBackend& make) {
    try {
      Run(name, recipe, make);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  void ExpectSaid(std::string_view words) const {
    const std::string log = ReadFile(folder_ / "log");
    const size_t at = log.find(words);
    EXPECT_NE(at, log.npos) << log;
    EXPECT_EQ(log.find(words, at + 1), log.npos) << "said twice: " << log;
  }

  TemporaryDirectory folder_;
  Signals signals_;
};

// The processor adds in the order of ranks where memory is shared, and so do these devices.
TEST_F(PretendGroupTrain, SumsOfDevicesGiveTheBitsOfTheProcessor) {
  Recipe recipe = SmallRecipe(3);
  const std::string on_cpu = Run("cpu", recipe, BackendOf(recipe));
  for (const std::string transport : {"threads", "shm", "tcp"}) {
    PretendWires wires;
    recipe.transport.name = transport;
    EXPECT_EQ(Run(transport, recipe, OnWires(wires)), on_cpu);
    EXPECT_GE(wires.sums(), 3 * 3 * kSteps) << transport;  // buckets of every step
    ExpectSaid("gradients are summed by the devices (pretended wires)");
  }
}

TEST_F(PretendGroupTrain, MoreRanksThanDevicesAreStaged) {
  const Recipe recipe = SmallRecipe(3);
  const std::string on_cpu = Run("cpu", recipe, BackendOf(recipe));
  PretendWires wires;
  EXPECT_EQ(Run("staged", recipe, OnWires(wires, 2)), on_cpu);
  EXPECT_EQ(wires.sums(), 0);
  ExpectSaid("gradients are summed through the host: there are more ranks than devices: 0 and 2");
}

TEST_F(PretendGroupTrain, WhatMustNotDependOnRanksIsStaged) {
  Recipe recipe = SmallRecipe(1);
  recipe.trainer.deterministic = true;
  recipe.trainer.shards = 6;
  PretendWires wires;
  const std::string alone = Run("one", recipe, OnWires(wires));
  recipe.transport.ranks = 3;
  EXPECT_EQ(Run("three", recipe, OnWires(wires)), alone);
  EXPECT_EQ(wires.sums(), 0);
  ExpectSaid("--deterministic keeps one");
}

TEST_F(PretendGroupTrain, ARankAloneTriesItWhereAskedTo) {
  Recipe recipe = SmallRecipe(1);
  PretendWires wires;
  const std::string plain = Run("plain", recipe, OnWires(wires));
  EXPECT_EQ(wires.sums(), 0);
  recipe.trainer.device = "cuda";  // whatever computes: the backend is given
  recipe.strategy.algorithm = "device";
  EXPECT_EQ(Run("tried", recipe, OnWires(wires)), plain);
  EXPECT_GE(wires.sums(), 3 * kSteps);
}

TEST_F(PretendGroupTrain, DevicesThatCannotAreRefusedWhereAskedFor) {
  Recipe recipe = SmallRecipe(3);
  recipe.trainer.device = "cuda";
  recipe.strategy.algorithm = "device";
  PretendWires wires;
  const std::string shared = ErrorOf("shared", recipe, OnWires(wires, 2));
  EXPECT_NE(shared.find("\"device\": there are more ranks than devices: 0 and 2"), shared.npos)
      << shared;
  recipe.trainer.device = "cpu";
  const std::string processor = ErrorOf("processor", recipe, OnWires(wires));
  EXPECT_NE(processor.find("the ranks compute on the processor"), processor.npos) << processor;
}

// A group of workers below a server has sums of its own.
TEST_F(PretendGroupTrain, GroupsBelowAServerAddUp) {
  Recipe recipe = SmallRecipe(5);
  recipe.strategy.name = "mpi-ps";
  recipe.strategy.groups = 2;
  recipe.strategy.period = 2;
  recipe.transport.name = "threads";
  PretendWires wires;
  Run("groups", recipe, OnWires(wires));
  EXPECT_GT(wires.sums(), kSteps);
}

TEST_F(PretendGroupTrain, ASlowRankIsWaitedFor) {
  Recipe recipe = SmallRecipe(3);
  const std::string on_cpu = Run("cpu", recipe, BackendOf(recipe));
  recipe.emulate.slow = "1:20";
  PretendWires wires;
  EXPECT_EQ(Run("slow", recipe, OnWires(wires)), on_cpu);
}

// With kill -9, in the middle of a step. The run goes on from its checkpoint as if nothing was.
TEST_F(PretendGroupTrain, AKilledRankEndsTheJob) {
  Recipe recipe = SmallRecipe(3);
  recipe.trainer.checkpoint_steps = 4;
  PretendWires whole;
  const std::string undisturbed = Run("whole", recipe, OnWires(whole));
  const int64_t middle = whole.sums() / 3 / 2 + 1;
  for (const std::string transport : {"shm", "tcp"}) {
    recipe.transport.name = transport;
    PretendWires wires({PretendWires::Fault::kDies, 1, middle});
    const std::string error = ErrorOf(transport, recipe, OnWires(wires));
    EXPECT_NE(error.find("rank 1"), error.npos) << error;
    EXPECT_NE(error.find("continue with: trireme train --resume"), error.npos) << error;
    EXPECT_LT(wires.sums(), whole.sums());
    PretendWires again;
    EXPECT_EQ(Run(transport, recipe, OnWires(again)), undisturbed) << transport;
  }
}

// Others hear why, whose devices wait for it.
TEST_F(PretendGroupTrain, ARankThatThrowsEndsTheJob) {
  for (const std::string transport : {"threads", "shm", "tcp"}) {
    Recipe recipe = SmallRecipe(3);
    recipe.transport.name = transport;
    PretendWires wires({PretendWires::Fault::kThrows, 2, 40});
    const std::string error = ErrorOf(transport, recipe, OnWires(wires));
    EXPECT_NE(error.find("the card has burnt"), error.npos) << transport << ": " << error;
    EXPECT_NE(error.find("rank 2"), error.npos) << error;
  }
}

// The watch sees that nobody moves, and wakes those whose devices wait.
TEST_F(PretendGroupTrain, ARankThatHangsEndsTheJob) {
  Recipe recipe = SmallRecipe(3);
  recipe.transport.name = "shm";
  recipe.trainer.stall_seconds = 3;
  recipe.emulate.hang = "1:9";
  PretendWires wires;
  EXPECT_NE(ErrorOf("hangs", recipe, OnWires(wires)), "");
}

}  // namespace
}  // namespace trireme
