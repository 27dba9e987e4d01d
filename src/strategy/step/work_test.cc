#include "strategy/step/work.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trireme {
namespace {

// Every step of two epochs, for any number of workers: the shards of all workers, in order, are
// exactly the step's positions.
void ExpectPartition(const Plan& plan, int workers) {
  for (int64_t step = 0; step < 2 * plan.steps_per_epoch(); ++step) {
    const int64_t of_epoch = step % plan.steps_per_epoch();
    int64_t at = of_epoch * plan.batch;
    int index = 0, filled = 0;
    int64_t smallest = plan.batch, largest = 0;
    for (int w = 0; w < workers; ++w) {
      Work work{.leases = {7}};
      WorkOf(plan, step, w, workers, work);
      EXPECT_EQ(work.step, step);
      EXPECT_EQ(work.epoch, step / plan.steps_per_epoch());
      EXPECT_EQ(work.ends_epoch, of_epoch == plan.steps_per_epoch() - 1);
      EXPECT_TRUE(work.leases.empty());
      EXPECT_EQ(int(work.shards.size()), ShardsOf(plan, w, workers));
      for (const Shard& shard : work.shards) {
        EXPECT_EQ(shard.index, index++);
        EXPECT_EQ(shard.begin, at);
        EXPECT_GE(shard.end, at);
        at = shard.end;
        filled += shard.size() > 0;
        smallest = std::min(smallest, shard.size());
        largest = std::max(largest, shard.size());
      }
      EXPECT_EQ(work.batch, std::min(plan.batch, plan.samples - of_epoch * plan.batch));
      if (w == workers - 1) {
        EXPECT_EQ(work.filled_shards, filled);
        EXPECT_EQ(at, of_epoch * plan.batch + work.batch);
      }
    }
    EXPECT_EQ(index, plan.shards);
    EXPECT_LE(largest - smallest, 1);
  }
}

TEST(Work, ShardsOfAllWorkersAreTheStepExactly) {
  for (int workers : {1, 2, 3, 4, 7}) {
    for (int shards : {1, 2, 3, 12, 13}) {
      for (int64_t batch : {1, 5, 12, 96, 100}) {
        for (int64_t samples : {1, 11, 96, 101}) {
          SCOPED_TRACE(testing::Message() << workers << " workers, " << shards << " shards, batch "
                                          << batch << ", samples " << samples);
          ExpectPartition({.samples = samples, .batch = batch, .shards = shards}, workers);
        }
      }
    }
  }
}

TEST(Work, DoesNotDependOnTheNumberOfWorkers) {
  const Plan plan{.samples = 1000, .batch = 96, .shards = 12};
  Work one, two;
  WorkOf(plan, 10, 0, 1, one);
  WorkOf(plan, 10, 1, 2, two);
  ASSERT_EQ(two.shards.size(), 6u);
  for (int s = 0; s < 6; ++s) {
    EXPECT_EQ(two.shards[s].begin, one.shards[6 + s].begin);
    EXPECT_EQ(two.shards[s].index, one.shards[6 + s].index);
  }
}

TEST(Work, ReusesItsMemory) {
  const Plan plan{.samples = 1000, .batch = 96, .shards = 12};
  Work work;
  WorkOf(plan, 0, 0, 1, work);
  const Shard* data = work.shards.data();
  for (int step = 1; step < 30; ++step) WorkOf(plan, step, 0, 1, work);
  EXPECT_EQ(work.shards.data(), data);
}

}  // namespace
}  // namespace trireme
