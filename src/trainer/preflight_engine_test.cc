#include <gtest/gtest.h>

#include "base/error.h"
#include "flat/cpu/host.h"
#include "trainer/preflight.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

// Computes nothing; says that it is made for some instruction set.
class NamedEngine : public Engine {
 public:
  explicit NamedEngine(std::string target) : target_(std::move(target)) {}
  std::string_view name() const override { return "named"; }
  std::string_view target() const override { return target_; }
  Device& device() override { return device_; }
  bool Computes(std::string_view) const override { return true; }
  std::span<const Fusion> fusions() const override { return {}; }
  std::unique_ptr<Executable> Load(std::shared_ptr<const Program>, Queue&) override { return {}; }

 private:
  const std::string target_;
  HostDevice device_;
};

// What two ranks with engines for these instruction sets say before the first step.
std::string Agree(bool deterministic, const std::string& first, const std::string& second) {
  Recipe recipe;
  recipe.trainer.deterministic = deterministic;
  recipe.transport.ranks = 2;
  Job jobs[2];
  for (int r = 0; r < 2; ++r) {
    jobs[r] = PrepareJob(recipe, [target = r ? second : first](const BackendNeeds&) {
      return Backend{.engine = std::make_unique<NamedEngine>(target)};
    });
  }
  try {
    RunRanks(2, 60, [&](World& world) { CheckAgreement(world.group(), jobs[world.rank()]); });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Preflight, ComparesTheInstructionsThatCompute) {
  EXPECT_EQ(Agree(true, "AVX3", "AVX3"), "");
  EXPECT_NE(Agree(true, "AVX3", "AVX2").find("instruction set differs"), std::string::npos);
  EXPECT_NE(Agree(true, "AVX3", "AVX3+amx").find("instruction set differs"), std::string::npos);
  EXPECT_EQ(Agree(false, "AVX3", "AVX2"), "");  // no bits are promised
}

// Ranks of one engine, each on the device that was said to it.
TEST(Preflight, RanksOnSeveralDevicesOfAnEngineAreOneRecipe) {
  const auto agree = [](const std::vector<std::string>& devices) {
    std::vector<Job> jobs;
    for (const std::string& device : devices) {
      Recipe recipe;
      recipe.trainer.device = device;
      recipe.transport.ranks = int(devices.size());
      jobs.push_back(PrepareJob(recipe, [](const BackendNeeds&) {
        return Backend{.engine = std::make_unique<NamedEngine>("any")};
      }));
    }
    RunRanks(int(devices.size()), 60,
             [&](World& world) { CheckAgreement(world.group(), jobs[size_t(world.rank())]); });
  };
  EXPECT_THROW(agree({"cpu", "ref"}), Error);
  for (const EngineKind& kind : EngineKinds()) {
    if (!kind.numbered) continue;
    const std::string name(kind.name);
    EXPECT_NO_THROW(agree({name + ":0", name + ":1", name}));
  }
}

// What the engine of a client that joins says of how it computes convolutions.
std::string ChoiceOfClient(const std::string& winograd) {
  Recipe recipe;
  recipe.model.name = "cnn";
  recipe.data.source = "synthetic:12x12x1:3:40";
  recipe.strategy.name = "easgd";
  recipe.transport.ranks = 2;
  recipe.engine.winograd = winograd;
  const RunInfo run_info = ReadRunInfo(RunInfoOf(PrepareJob(recipe, BackendOf(recipe))));
  const Job job = PrepareClient(
      run_info, [](Sections& sections) { sections.SetAssignment("trainer.threads=1"); });
  EXPECT_EQ(job.threads_per_rank, 1);
  Graph graph = job.graph;
  return job.make_backend({}).engine->Choose(graph);
}

TEST(Preflight, AClientComputesAsTheServersRecipeSays) {
  for (const std::string how : {"off", "f2", "auto"}) {
    EXPECT_NE(ChoiceOfClient(how).find("winograd (" + how + ")"), std::string::npos) << how;
  }
}

}  // namespace
}  // namespace trireme
