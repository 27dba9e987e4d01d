#include "study/replay.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

// As if every run had taken ten seconds, divided by what its first key says if it is a number.
std::vector<SweepNumbers> Pretended(const SweepPlan& plan) {
  std::vector<SweepRow> rows;
  for (const Combination& combination : Combinations(plan)) {
    const double n = ParseNumber<double>(combination.values[0]).value_or(1);
    rows.push_back({combination, {{.folder = "r", .seconds = 10 / n, .samples_per_second = n}}});
  }
  return NumbersOf(plan, rows);
}

TEST(Replay, EveryOneIsAPlanThatCanRunOrSaysWhyNot) {
  for (const ReplayKind& kind : ReplayKinds()) {
    for (const bool full : {false, true}) {
      const Replay replay = kind.make({.full = full});
      EXPECT_FALSE(replay.parts.empty());
      std::vector<ReplayedPart> parts;
      for (const ReplayPart& part : replay.parts) {
        parts.push_back({part, {}});
        if (!part.skipped.empty()) continue;
        EXPECT_NO_THROW(CheckPlan(part.plan)) << kind.name << " " << part.name;
        parts.back().rows = Pretended(part.plan);
      }
      const Page page = ReplayPage(replay, parts, "trireme replay");
      EXPECT_EQ(page.sections.size(), replay.parts.size() + 2);
      EXPECT_NE(ReplayText(replay, parts).find(replay.parts[0].title), std::string::npos);
      EXPECT_EQ(ReplayJson(replay, parts).At("parts").Items().size(), parts.size());
    }
  }
  EXPECT_THROW(FindReplay("bsp-mnst"), UsageError);
}

// P is how many samples there are to train on; a worker never has more than one in a step.
TEST(Replay, TheDiagramOfTheBrokerIsSamplesByWorkers) {
  for (const bool full : {false, true}) {
    const SweepPlan plan = FindReplay("bsp-mnist").make({.full = full}).parts[0].plan;
    ASSERT_EQ(plan.vary.size(), 2u);
    EXPECT_EQ(plan.vary[0].key, "transport.ranks");
    EXPECT_EQ(plan.vary[1].key, "data.limit");
    for (const Combination& combination : Combinations(plan)) {
      const Recipe recipe = RecipeOf(plan, combination);
      EXPECT_EQ(recipe.trainer.batch_per_worker, 1);
      EXPECT_EQ(recipe.trainer.epochs, 5);
      EXPECT_EQ(recipe.optimizer.lr, 0.1);
      EXPECT_EQ(recipe.strategy.name, "bsp");
    }
    EXPECT_EQ(plan.vary[1].values.back(), full ? "60000" : "10000");
  }
}

TEST(Replay, ScenesNeedPictures) {
  const Replay without = FindReplay("scenes-mpi").make({});
  EXPECT_NE(without.parts[0].skipped.find("images:DIR"), std::string::npos);
  const Replay with = FindReplay("scenes-mpi").make({.data = "images:scenes"});
  EXPECT_EQ(with.parts[0].skipped, "");
}

TEST(Replay, ShowsThePublishedTimesBesideOurs) {
  const Replay replay = FindReplay("ddp-sweep").make({});
  const ReplayPart& nodes = replay.parts[1];
  const std::vector<ReplayedPart> parts = {{nodes, Pretended(nodes.plan)}};
  const Json beside = ReplayJson(replay, parts).At("parts").Items()[0].At("beside");
  ASSERT_EQ(beside.Items().size(), 5u);  // 16 nodes are published, ours has 8
  const Json& eight = beside.Items()[3];
  EXPECT_EQ(eight.At("published_seconds").AsDouble(), 270);
  EXPECT_NEAR(eight.At("published_speedup").AsDouble(), 1926.0 / 270, 1e-9);
  EXPECT_NEAR(eight.At("speedup").AsDouble(), 8, 1e-9);
  EXPECT_TRUE(beside.Items()[4].At("seconds").IsNull());
}

}  // namespace
}  // namespace trireme
