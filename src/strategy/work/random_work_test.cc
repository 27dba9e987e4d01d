#include "strategy/work/random_work.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace trireme {
namespace {

constexpr Plan kPlan{.samples = 100, .batch = 24, .shards = 7, .steps = 400};

// Which worker has the first shard, by step. In every step all shards are given out, each once, and
// a worker's are neighbours, in order.
std::vector<int> FirstOwners(int workers, uint64_t seed) {
  std::vector<int> owners;
  std::vector<RandomWork> sources;
  for (int w = 0; w < workers; ++w) sources.emplace_back(kPlan, w, workers, seed);
  for (int64_t step = 0; step < kPlan.steps; ++step) {
    std::set<int> given;
    for (int w = 0; w < workers; ++w) {
      Work work;
      EXPECT_EQ(sources[size_t(w)].Next(nullptr, step, work), Turn::kStep);
      EXPECT_EQ(work.step, step);
      for (size_t i = 0; i < work.shards.size(); ++i) {
        EXPECT_TRUE(given.insert(work.shards[i].index).second);
        EXPECT_EQ(work.shards[i].index, work.shards[0].index + int(i));
        if (work.shards[i].index == 0) owners.push_back(w);
      }
    }
    EXPECT_EQ(int(given.size()), kPlan.shards);
  }
  Work work;
  EXPECT_EQ(sources[0].Next(nullptr, kPlan.steps, work), Turn::kEnd);
  return owners;
}

TEST(RandomWork, EveryWorkerHasEveryPartEquallyOften) {
  for (const int workers : {1, 2, 4, 9}) {
    std::map<int, int> times;
    for (const int owner : FirstOwners(workers, 3)) ++times[owner];
    EXPECT_EQ(int(times.size()), workers);
    for (const auto& [owner, count] : times) {
      EXPECT_NEAR(double(count), double(kPlan.steps) / workers, 50) << owner << " of " << workers;
    }
  }
}

TEST(RandomWork, TheSeedAloneDecides) {
  EXPECT_EQ(FirstOwners(4, 3), FirstOwners(4, 3));
  EXPECT_NE(FirstOwners(4, 3), FirstOwners(4, 4));
}

}  // namespace
}  // namespace trireme
