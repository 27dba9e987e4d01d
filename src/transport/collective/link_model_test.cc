#include "transport/collective/link_model.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "base/clock.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

// A network: 10 us, 1 GB/s, 10 GB/s of additions. Inside a host ten times as fast.
constexpr LinkModel kNetwork{{1e-5, 1e-9}, {1e-6, 1e-10}, 1e-10};

std::vector<const AllReduceAlgorithm*> Named(std::vector<const char*> names) {
  std::vector<const AllReduceAlgorithm*> all;
  for (const char* name : names) all.push_back(&FindAllReduce(name));
  return all;
}
const auto kFlat = Named({"ring", "halving-doubling", "tree", "chain"});

std::string Chosen(const LinkModel& model, const RankShape& shape, double bytes,
                   const std::vector<const AllReduceAlgorithm*>& candidates = kFlat) {
  return ChooseAllReduce(model, shape, bytes, candidates).name;
}

TEST(EstimateAllReduce, AddsUpTheModel) {
  const auto estimate = [](const char* name, int ranks, double bytes) {
    return EstimateAllReduce(kNetwork, RankShape::OneHost(ranks), bytes, FindAllReduce(name));
  };
  // Ring of 4, 1 MB: 6 steps, 1.5 MB, 0.75 MB added.
  EXPECT_DOUBLE_EQ(estimate("ring", 4, 1e6), 6e-5 + 1.5e-3 + 0.75e-4);
  // Halving and doubling of 4: 4 steps; of 6: 4 places, 6 steps and two messages of all.
  EXPECT_DOUBLE_EQ(estimate("halving-doubling", 4, 1e6), 4e-5 + 1.5e-3 + 0.75e-4);
  EXPECT_DOUBLE_EQ(estimate("halving-doubling", 6, 1e6), 6e-5 + 3.5e-3 + 1.75e-4);
  // Tree of 5: 3 levels.
  EXPECT_DOUBLE_EQ(estimate("tree", 5, 1e6), 6e-5 + 6e-3 + 3e-4);
  // Chain of 3, one piece: 4 steps of all; of 10 pieces: 4 of the first, 2 of the others.
  EXPECT_DOUBLE_EQ(estimate("chain", 3, 1e5), 4e-5 + 4e-4 + 2e-5);
  const double piece = 262144;
  EXPECT_DOUBLE_EQ(estimate("chain", 3, 10 * piece),
                   4e-5 + (4 + 18) * piece * 1e-9 + (2 + 9) * piece * 1e-10);
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    EXPECT_EQ(estimate(algorithm.name, 1, 1e6), 0) << algorithm.name;
  }
}

TEST(EstimateAllReduce, TellsHostsApart) {
  // 2 hosts of 4: inside 6 steps, 1.5 MB; between 2 steps, 1 MB; added 0.75 MB + 0.5 MB / 4.
  EXPECT_DOUBLE_EQ(EstimateAllReduce(kNetwork, {8, 2, 4, 4}, 1e6, FindAllReduce("two-level")),
                   (2e-5 + 1e-3) + (6e-6 + 1.5e-4) + 0.875e-4);
  // 3 and 2: two lanes, one guest: 2 more steps and 2 MB inside, 1 MB added.
  EXPECT_DOUBLE_EQ(EstimateAllReduce(kNetwork, {5, 2, 2, 3}, 1e6, FindAllReduce("two-level")),
                   (2e-5 + 1e-3) + (4e-6 + 3e-4) + 1e-10 * (0.5e6 + 0.25e6 + 1e6));
}

TEST(ChooseAllReduce, FewStepsForShortMessagesFewBytesForLongOnes) {
  EXPECT_EQ(Chosen(kNetwork, RankShape::OneHost(64), 64), "halving-doubling");
  EXPECT_EQ(Chosen(kNetwork, RankShape::OneHost(48), 64), "halving-doubling");
  EXPECT_EQ(Chosen(kNetwork, RankShape::OneHost(48), 64, Named({"ring", "chain", "tree"})), "tree");
  EXPECT_EQ(Chosen(kNetwork, RankShape::OneHost(64), 47e6), "halving-doubling");
  EXPECT_EQ(Chosen(kNetwork, RankShape::OneHost(6), 47e6), "ring");
  EXPECT_EQ(Chosen(kNetwork, RankShape::OneHost(2), 47e6), "ring");  // the first of equals
}

TEST(ChooseAllReduce, GoesBetweenHostsOnlyOnce) {
  const auto all = Named({"ring", "halving-doubling", "tree", "two-level", "chain"});
  EXPECT_EQ(Chosen(kNetwork, {12, 3, 4, 4}, 47e6, all), "two-level");
  constexpr LinkModel kOneHost{kNetwork.inner, kNetwork.inner, kNetwork.seconds_per_added_byte};
  EXPECT_EQ(Chosen(kOneHost, RankShape::OneHost(12), 47e6, all), "ring");  // the first of equals
}

TEST(ChooseAllReduce, AsksNothingButItsArguments) {
  EXPECT_EQ(Chosen({}, RankShape::OneHost(4), 1e6), "ring");  // all cost nothing: the first
  EXPECT_EQ(Chosen(kNetwork, RankShape::OneHost(6), 47e6, Named({"tree"})), "tree");
}

class MeasureLinkTest : public testing::TestWithParam<int> {};

TEST_P(MeasureLinkTest, GivesAllRanksTheSamePossibleNumbers) {
  const int ranks = GetParam();
  std::vector<LinkModel> models(ranks);
  std::vector<int> host_of(ranks);
  for (int r = 0; r < ranks; ++r) host_of[r] = r % 2;
  for (bool hosts_known : {false, true}) {
    RunRanks(ranks, 60, [&](World& world) {
      HostGroups one(world.group());
      HostGroups two(world.group(), host_of);
      models[world.rank()] = MeasureLink(hosts_known ? two : one, 0);
    });
    for (const LinkModel& m : models) {
      EXPECT_EQ(m.any.latency_s, models[0].any.latency_s);
      EXPECT_EQ(m.any.seconds_per_byte, models[0].any.seconds_per_byte);
      EXPECT_EQ(m.inner.latency_s, models[0].inner.latency_s);
      EXPECT_EQ(m.inner.seconds_per_byte, models[0].inner.seconds_per_byte);
      EXPECT_EQ(m.seconds_per_added_byte, models[0].seconds_per_added_byte);
    }
    EXPECT_GT(models[0].seconds_per_added_byte, 0);
    EXPECT_EQ(models[0].any.latency_s > 0, ranks > 1);
    EXPECT_LT(models[0].any.latency_s, 60);  // some seconds, where the machine has no time
    EXPECT_EQ(models[0].inner.latency_s > 0, hosts_known ? ranks > 2 : ranks > 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, MeasureLinkTest, testing::Values(1, 2, 3, 4, 5, 8));

}  // namespace
}  // namespace trireme
