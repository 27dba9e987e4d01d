// Hogwild through the full seam on a toy engine: one state, free pace, positions from a queue.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "strategy/work/shared_work_queue.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr double kForEver = 3600;  // longer than a test may take

using Taken = std::map<std::pair<int64_t, int64_t>, int>;  // (epoch, position): how often

struct HogwildRun {
  int ranks = 3;
  Plan plan{.samples = 100, .batch = 24, .shards = 1, .steps = 15};  // three epochs
  OptimizerOptions optimizer{.lr = 0.05, .momentum = 0};
  int64_t save_after = -1;  // own steps of worker 0
  toy::Memory* save = nullptr;
  const toy::Memory* resume = nullptr;
  bool stop_after_save = false;
  std::function<void(int rank, const Work&)> in_step;

  // What came of it.
  Taken taken;
  std::vector<int> epoch_ends;  // by rank
  std::vector<float> state;     // at the end, of worker 0
  std::vector<float> first_epoch;
  std::vector<ClientStats> first_workers, workers;  // at the end of an epoch, of the run
};

void Train(HogwildRun& run) {
  const toy::Model model(500);
  const StrategyOptions options{.name = "hogwild"};
  const StrategySetup setup{ResolveStrategy(options, {.ranks = run.ranks}), run.plan, model.layout};
  std::mutex mutex;
  run.epoch_ends.assign(run.ranks, 0);
  RunRanks(run.ranks, kForEver, [&](World& world) {
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    EXPECT_FALSE(strategy->InStep());
    EXPECT_EQ(strategy->Records(), world.rank() == 0);
    toy::Worker worker(model, run.optimizer, run.plan, *device, *strategy);
    worker.before_last_bucket = [&](const Work& work) {
      {
        std::lock_guard lock(mutex);
        for (int64_t p = work.shards[0].begin; p < work.shards[0].end; ++p) {
          ++run.taken[{work.epoch, p}];
        }
      }
      if (run.in_step) run.in_step(world.rank(), work);
    };
    worker.Start(run.resume ? run.resume->state : model.initial, 0, run.resume);
    for (;;) {
      const Turn turn = worker.Step();
      if (turn == Turn::kEnd) break;
      if (turn == Turn::kEpochEnd) {
        if (run.epoch_ends[world.rank()]++ == 0 && world.rank() == 0) {
          run.first_epoch = worker.Snapshot();
          run.first_workers = strategy->worker_stats();
        }
        continue;
      }
      if (world.rank() == 0 && run.save && worker.step() == run.save_after) {
        worker.Save(*run.save);
        if (run.stop_after_save) strategy->Stop();
      }
    }
    worker.Finish();
    if (world.rank() == 0) {
      run.state = worker.Snapshot();
      run.workers = strategy->worker_stats();
    }
  });
}

void ExpectEachOnce(const Taken& taken, int64_t positions, int64_t samples) {
  EXPECT_EQ(int64_t(taken.size()), positions);
  for (const auto& [at, count] : taken) {
    EXPECT_EQ(count, 1) << "epoch " << at.first << " position " << at.second;
    EXPECT_LT(at.first * samples + at.second, positions);
  }
}

// How many steps each has begun. Workers wait for each other within their steps, so that what a
// test is about happens whomever the machine leaves waiting.
class Steps {
 public:
  explicit Steps(int ranks) : begun_(size_t(ranks)) {}
  // The number of this step, from 1.
  int Begin(int rank) {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    return ++begun_[size_t(rank)];
  }
  void Await(int rank, int steps) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_[size_t(rank)] >= steps; });
  }
  void AwaitOthers(int rank, int steps) {  // of all others together
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      const int all = std::accumulate(begun_.begin(), begun_.end(), 0);
      return all - begun_[size_t(rank)] >= steps;
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> begun_;
};

double MeanError(const std::vector<float>& state) {
  const toy::Model model(500);
  double sum = 0;
  size_t n = 0;
  for (const Range& range : model.layout.parameters) {
    for (size_t j = range.begin; j < range.end(); ++j, ++n) {
      double mean = 0;
      for (int64_t p = 0; p < 100; ++p) mean += toy::Target(0, p, j) / 100.0;
      sum += std::abs(state[j] - mean);
    }
  }
  return sum / double(n);
}

TEST(Hogwild, EveryPositionIsUsedOnceInEachEpochAndTheWeightsArrive) {
  for (int ranks : {1, 2, 4}) {
    HogwildRun run{.ranks = ranks};
    run.plan.steps = 50;
    Train(run);
    ExpectEachOnce(run.taken, 1000, 100);
    EXPECT_EQ(run.epoch_ends, std::vector<int>(ranks, 10));
    EXPECT_LT(MeanError(run.state), 0.3) << ranks;
  }
}

TEST(Hogwild, CountsEachWorkersUpdatesSamplesAndStaleness) {
  HogwildRun run{.ranks = 3};
  Steps steps(3);
  run.in_step = [&](int rank, const Work&) {  // the others go on during the last one's first step
    if (steps.Begin(rank) > 1) return;
    if (rank < 2) steps.Await(2, 1);
    if (rank == 2) steps.AwaitOthers(2, 8);  // of 13 in the epoch
  };
  Train(run);
  ASSERT_EQ(run.workers.size(), 3u);
  const auto samples = [](const std::vector<ClientStats>& workers) {
    int64_t sum = 0;
    for (const ClientStats& worker : workers) sum += worker.samples;
    return sum;
  };
  EXPECT_EQ(samples(run.first_workers), 100);  // of that epoch, though others have gone on
  EXPECT_EQ(samples(run.workers), 300);
  for (const ClientStats& worker : run.workers) {
    EXPECT_EQ(worker.staleness.updates(), worker.pushes);
    EXPECT_GE(worker.samples, worker.pushes);
  }
  EXPECT_GE(run.workers[2].staleness.most(), 6);  // all but those that the two are in

  HogwildRun alone{.ranks = 1};
  Train(alone);
  ASSERT_EQ(alone.workers.size(), 1u);
  EXPECT_EQ(alone.workers[0].samples, 300);
  EXPECT_EQ(alone.workers[0].staleness.most(), 0);
}

TEST(Hogwild, ARunMayEndWithinAnEpoch) {
  HogwildRun run;
  run.plan.steps = 7;  // an epoch, and 2 steps of 24
  Train(run);
  ExpectEachOnce(run.taken, 148, 100);
  EXPECT_EQ(run.epoch_ends, std::vector<int>(3, 1));
}

// Alone it is ordinary training: in step with one worker, one shard.
TEST(Hogwild, OneWorkerHasTheBitsOfAllReduce) {
  HogwildRun run{.ranks = 1};
  Train(run);
  const toy::Model model(500);
  const StrategyOptions options{.name = "allreduce"};
  const StrategySetup setup{ResolveStrategy(options, {.ranks = 1}), run.plan, model.layout};
  RunRanks(1, kForEver, [&](World& world) {
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    toy::Worker worker(model, run.optimizer, run.plan, *device, *strategy);
    worker.Start(model.initial, 0, nullptr);
    while (worker.Step() == Turn::kStep) {
    }
    worker.Finish();
    EXPECT_EQ(worker.Snapshot(), run.state);
  });
}

// Nobody waits for it: the others take all that is left of the epoch during its first step.
TEST(Hogwild, ASlowWorkerTakesLessWork) {
  constexpr int64_t kLease = 8;
  HogwildRun run;
  Steps steps(3);
  std::mutex mutex;
  std::vector<int64_t> samples(3);  // of the first epoch
  run.in_step = [&](int rank, const Work& work) {
    {
      const std::lock_guard lock(mutex);
      if (work.epoch == 0) samples[size_t(rank)] += work.batch;
    }
    if (steps.Begin(rank) > 1) return;
    if (rank < 2) steps.Await(2, 1);
    if (rank == 2) steps.AwaitOthers(2, 12);  // of 13 in the epoch
  };
  Train(run);
  ExpectEachOnce(run.taken, 300, 100);
  EXPECT_EQ(samples[2], kLease);
  EXPECT_EQ(samples[0] + samples[1], 100 - kLease);
}

// A snapshot in the middle holds exactly the positions that it says.
TEST(Hogwild, AResumedRunUsesEveryPositionOnce) {
  for (int64_t after : {1, 3, 7}) {
    toy::Memory saved;
    HogwildRun before{.save_after = after, .save = &saved, .stop_after_save = true};
    Steps steps(3);
    before.in_step = [&](int rank, const Work&) {
      // So many are left to the first, of 13 in the epoch.
      if (steps.Begin(rank) == 3 && rank > 0) steps.Await(0, int(after));
    };
    Train(before);
    const int64_t held = saved.Int("handout.taken");
    EXPECT_GT(held, 0);
    HogwildRun rest{.ranks = 2, .resume = &saved};
    Train(rest);
    Taken all = rest.taken;
    for (const auto& [at, count] : before.taken) {
      if (at.first * 100 + at.second < held) all[at] += count;
    }
    ExpectEachOnce(all, 300, 100);
    EXPECT_EQ(int64_t(rest.taken.size()), 300 - held);
  }
}

// Others may be at the end of the next epoch already, waiting, when one stops the run.
TEST(Hogwild, AStopReachesThoseWhoWaitAtTheEndOfAnEpoch) {
  const toy::Model model(500);
  const Plan plan{.samples = 8, .batch = 3, .shards = 1, .steps = 3000};
  const StrategyOptions options{.name = "hogwild"};
  const StrategySetup setup{ResolveStrategy(options, {.ranks = 3}), plan, model.layout};
  RunRanks(3, kForEver, [&](World& world) {
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    toy::Worker worker(model, {.lr = 0.05, .momentum = 0}, plan, *device, *strategy);
    worker.Start(model.initial, 0, nullptr);
    for (;;) {
      const Turn turn = worker.Step();
      if (turn == Turn::kEnd) break;
      if (turn == Turn::kEpochEnd && world.rank() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));  // evaluates
        strategy->Stop();
        break;
      }
    }
    worker.Finish();
  });
}

TEST(Hogwild, AWorkerThatThrowsEndsAllAlsoWhileOneTakesASnapshot) {
  toy::Memory saved;
  HogwildRun run{.save_after = 1, .save = &saved};
  Steps steps(3);
  run.in_step = [&](int rank, const Work&) {
    if (steps.Begin(rank) == 1) {
      for (const int other : {0, 1, 2}) steps.Await(other, 1);
    }
    if (rank != 1) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the snapshot waits, most likely
    throw Error("disk full");
  };
  try {
    Train(run);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("disk full (rank 1 of 3"), 0u) << error.what();
  }
}

TEST(SharedWorkQueue, RefusesNumbersThatAreNone) {
  RunRanks(1, kForEver, [](World& world) {
    SharedWorkQueue queue(world.group(), {.samples = 100, .batch = 10, .steps = 15}, 5);
    EXPECT_THROW(queue.Load(-1, 0), Error);
    EXPECT_THROW(queue.Load(151, 0), Error);
    EXPECT_THROW(queue.Load(99, 1), Error);
    queue.Load(100, 1);
    EXPECT_EQ(queue.taken(), 100);
  });
}

}  // namespace
}  // namespace trireme
