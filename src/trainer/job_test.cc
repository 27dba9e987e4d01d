#include "trainer/job.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace trireme {
namespace {

Recipe SmallRecipe(const std::string& strategy, int ranks) {
  Recipe recipe;
  recipe.strategy.name = strategy;
  recipe.transport.ranks = ranks;
  return recipe;
}

// By its place a rank chooses a card of its host: servers leave none free.
TEST(Job, ARanksPlaceIsItsNumberAmongThoseOfItsHostThatTrain) {
  const Recipe recipe = SmallRecipe("sync-ps", 6);
  const auto places = [&](const Neighbours& neighbours, std::vector<int> ranks) {
    const Job job = PrepareJob(recipe, BackendOf(recipe), neighbours);
    std::vector<int> all;
    for (const int rank : ranks) all.push_back(job.NeedsOf(rank).place);
    return all;
  };
  using Ints = std::vector<int>;
  EXPECT_EQ(places({}, {1, 2, 3, 4, 5}), (Ints{0, 1, 2, 3, 4}));
  EXPECT_EQ(places({.ranks = {3, 4, 5}}, {3, 4, 5}), (Ints{0, 1, 2}));
  // A launcher gave each its own processors.
  EXPECT_EQ(places({.ranks = {4}, .host = {0, 2, 4}, .process_each = true}, {2, 4}), (Ints{0, 1}));

  const Job job = PrepareJob(recipe, BackendOf(recipe));
  EXPECT_FALSE(job.NeedsOf(0).trains);
  EXPECT_TRUE(job.NeedsOf(1).trains);
  EXPECT_EQ(job.NeedsOf(1).threads, job.threads_per_rank);
}

TEST(Job, RanksOfCardsLeaveTheCoresToLoadersAndServers) {
  for (const EngineKind& kind : EngineKinds()) {
    Recipe recipe = SmallRecipe("sync-ps", 3);
    recipe.trainer.device = kind.name;
    const Job job = PrepareJob(recipe, BackendOf(recipe, /*trains=*/false));
    EXPECT_EQ(job.threads_per_rank, kind.host_memory ? job.cores_per_rank : 1);
    EXPECT_EQ(job.NeedsOf(0).threads, job.cores_per_rank);
    EXPECT_EQ(job.DeviceOf(0).kind, kind.host_memory ? &kind : &HostEngine());
    EXPECT_EQ(job.DeviceOf(1).kind, &kind);
  }
}

TEST(Job, AServerTakesTheHostsBackendWhateverItsWorkersComputeWith) {
  for (const EngineKind& kind : EngineKinds()) {
    Recipe recipe = SmallRecipe("sync-ps", 3);
    recipe.trainer.device = kind.name;
    const MakeBackend make = BackendOf(recipe, /*trains=*/false);
    EXPECT_TRUE(make({.trains = false}).engine->device().host_visible()) << kind.name;
    if (kind.Missing().empty()) continue;
    EXPECT_TRUE(make({.trains = true}).engine->device().host_visible());  // for an evaluation
    EXPECT_THROW(BackendOf(recipe), Error);
  }
}

TEST(Job, WorkersThatTouchEachOthersMemoryNeedTheHosts) {
  for (const EngineKind& kind : EngineKinds()) {
    for (const std::string strategy : {"bsp", "hogwild", "dogwild"}) {
      Recipe recipe = SmallRecipe(strategy, 3);
      recipe.trainer.device = kind.name;
      if (kind.host_memory) {
        EXPECT_NO_THROW(ChooseStrategy(recipe));
      } else {
        EXPECT_THROW(ChooseStrategy(recipe), UsageError) << kind.name << " " << strategy;
      }
    }
  }
}

}  // namespace
}  // namespace trireme
