#include "study/replay.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "study/claims.h"
#include "trainer/job.h"

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

// Both sides of the course have equally many ranks that train, its settings and its batches.
TEST(Replay, SendAndReceiveHasARankMoreThanAllReduce) {
  for (const char* name : {"iris-mpi", "scenes-mpi"}) {
    for (const bool full : {false, true}) {
      const ReplaySize size{.full = full, .data = "images:scenes"};
      const SweepPlan plan = FindReplay(name).make(size).parts[0].plan;
      for (const Combination& combination : Combinations(plan)) {
        const Recipe recipe = RecipeOf(plan, combination);
        const bool server = combination.values[1] == "send and receive";
        EXPECT_EQ(recipe.strategy.name, server ? "sync-ps" : "allreduce-weights");
        EXPECT_EQ(recipe.strategy.route, server ? "star" : "chain");
        EXPECT_EQ(std::to_string(recipe.transport.ranks - server), combination.values[0]);
        EXPECT_EQ(ChooseStrategy(recipe).workers(), recipe.transport.ranks - server);
        EXPECT_EQ(recipe.model.activation, "sigmoid");
        EXPECT_EQ(recipe.model.norm, "layer-plain");
        EXPECT_EQ(recipe.model.loss, "squared-error");
        EXPECT_EQ(recipe.trainer.batch_per_worker, 4);
        EXPECT_EQ(recipe.optimizer.lr, 0.01);
        EXPECT_EQ(recipe.transport.name, "tcp");
      }
      EXPECT_EQ(plan.vary[0].values.back(), full ? "20" : "4");
    }
  }
  const ReplaySize mpi{.transport = FindTransport("mpi")};
  const SweepPlan plan = FindReplay("iris-mpi").make(mpi).parts[0].plan;
  EXPECT_EQ(RecipeOf(plan, Combinations(plan)[0]).transport.name, kAutoTransport);  // of mpirun
}

TEST(Replay, ScenesNeedPictures) {
  const Replay without = FindReplay("scenes-mpi").make({});
  EXPECT_NE(without.parts[0].skipped.find("images:DIR"), std::string::npos);
  const Replay with = FindReplay("scenes-mpi").make({.data = "images:scenes"});
  EXPECT_EQ(with.parts[0].skipped, "");
}

TEST(Replay, ADeviceStandsBesideTheProcessor) {
  const ReplayPart alone = FindReplay("resnet50-batch").make({}).parts[0];
  EXPECT_EQ(alone.plan.vary.size(), 1u);
  const Replay replay = FindReplay("resnet50-batch").make({.device = "ref"});
  const SweepPlan& plan = replay.parts[0].plan;
  ASSERT_EQ(plan.vary.size(), 2u);
  EXPECT_EQ(plan.vary[1].values, (std::vector<std::string>{"cpu", "ref"}));
  const std::vector<ReplayedPart> parts = {{replay.parts[0], Pretended(plan)}};
  const Json claims = ReplayJson(replay, parts).At("parts").Items()[0].At("claims");
  EXPECT_NE(claims.Items()[1].At("ours").AsString().find("cpu takes "), std::string::npos);

  const Replay ddp = FindReplay("ddp-sweep").make({.device = "ref"});
  EXPECT_EQ(ddp.parts[4].plan.vary[0].values, (std::vector<std::string>{"f32", "fp16"}));
  EXPECT_NE(ddp.parts[4].text.find("tf32 row is left out"), std::string::npos);
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

TEST(Replay, ShowsWhatWasPublishedInWordsBesideOurs) {
  const Replay replay = FindReplay("bsp-mnist").make({});
  const std::vector<ReplayedPart> parts = {{replay.parts[0], Pretended(replay.parts[0].plan)}};
  const Json claim = ReplayJson(replay, parts).At("parts").Items()[0].At("claims").Items()[0];
  EXPECT_NE(claim.At("published").AsString().find("16"), std::string::npos);
  EXPECT_NE(claim.At("source").AsString().find("Go prototype"), std::string::npos);
  EXPECT_EQ(claim.At("ours").AsString(),
            "fastest with transport.ranks = 16 (data.limit=100), 16 (data.limit=1000), 16 "
            "(data.limit=10000)");
  EXPECT_NE(ReplayText(replay, parts).find("ours: fastest with"), std::string::npos);
}

TEST(Replay, RatiosAndMemoryAreThoseOfTheRows) {
  const ReplayPart part{.plan = {.vary = {{"workers", {"1", "2"}}, {"how", {"a", "b"}}}}};
  std::vector<SweepNumbers> rows;
  for (const auto& [n, how, seconds] :
       {std::tuple("1", "a", 3.0), {"1", "b", 2.0}, {"2", "a", 2.0}, {"2", "b", 1.0}}) {
    rows.push_back({.combination = {.values = {n, how}}, .seconds = Spread{seconds}});
  }
  EXPECT_EQ(TimesAsLong(part, rows), "a takes 1.50, 2.00 times as long as b with workers = 1, 2");
  EXPECT_EQ(TimesAsLong(part, {}), "");

  const ReplayPart batch{.plan = {.vary = {{"trainer.batch", {"5", "50"}}}}};
  std::vector<SweepNumbers> measured;
  for (const auto& [n, bytes] : {std::pair("5", 1024.0), {"50", 4096.0}}) {
    measured.push_back({.combination = {.values = {n}},
                        .runs = {{.folder = "r", .peak_bytes = bytes}},
                        .seconds = Spread{1}});
  }
  EXPECT_EQ(PeakMemory(batch, measured),
            "1.0 KiB of the process' memory with trainer.batch = 5, 4.0 KiB with 50");
}

// Every claim names its document and stands on a page, or waits for an experiment that has none
// yet.
TEST(Replay, EveryPublishedClaimIsShown) {
  std::set<std::string_view> shown = {"overlap"};  // docs/origins.md
  for (const ReplayKind& kind : ReplayKinds()) {
    for (const ReplayPart& part : kind.make({}).parts) {
      for (const ReplayClaim& claim : part.claims) shown.insert(claim.published->name);
    }
  }
  for (const PublishedClaim& claim : PublishedClaims()) {
    EXPECT_EQ(claim.source.substr(0, 4), "the ") << claim.name;
    EXPECT_TRUE(shown.contains(claim.name)) << claim.name;
  }
}

}  // namespace
}  // namespace trireme
