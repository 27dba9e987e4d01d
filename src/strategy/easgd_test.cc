// Elastic averaging through its preset: ranks of a threads world.
#include <gtest/gtest.h>

#include "base/error.h"
#include "strategy/check/stops_at.h"
#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

const OptimizerOptions kOptimizer{.lr = 0.1, .momentum = 0.5};

struct Result {
  std::vector<float> state;
  int64_t closed = 0;
  std::vector<int64_t> steps;  // of worker 0
};

Result Train(const Plan& plan, int ranks, const toy::Memory* resume, toy::Memory* save,
             int64_t stop_after = -1) {
  const toy::Model model(200);
  const StrategyOptions options{.name = "easgd", .period = 3};
  const StrategySetup setup{ResolveStrategy(options, {.ranks = ranks}), plan, model.layout};
  Result result;
  StopsAt keeper(stop_after);
  RunRanks(ranks, 60, [&](World& world) {
    if (world.rank() == 0) {
      const auto server = MakeServer(setup, world, resume ? resume->state : model.initial);
      if (resume) server->Load(*resume);
      server->Run(&keeper);
      result.closed = server->progress().positions;
      result.state.assign(server->centre().begin(), server->centre().end());
      if (save) {
        server->Save(*save);
        save->state = result.state;
      }
      return;
    }
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    EXPECT_FALSE(strategy->InStep());
    EXPECT_FALSE(strategy->Records());
    EXPECT_EQ(strategy->Summands(), 1);
    toy::Worker worker(model, kOptimizer, plan, *device, *strategy);
    worker.Start(model.initial, 0, resume);
    while (worker.Step() != Turn::kEnd) {
      if (world.rank() == 1) result.steps.push_back(worker.replica().work.step);
    }
    worker.Finish();
    EXPECT_GT(strategy->traffic().bytes_sent, 0u);
    EXPECT_GT(strategy->traffic().bytes_received, 0u);
  });
  return result;
}

TEST(EasgdPreset, UsesThePositionsOfAsManySteps) {
  // 4 steps an epoch, the last of 10 samples; 6 steps: one epoch and two steps of the next.
  const Plan plan{.samples = 100, .batch = 30, .shards = 1, .steps = 6};
  const Result result = Train(plan, 4, nullptr, nullptr);
  EXPECT_EQ(result.closed, 160);
  // The step of the schedule is the run's progress.
  EXPECT_TRUE(std::is_sorted(result.steps.begin(), result.steps.end()));
  for (const int64_t step : result.steps) {  // none, if the others were faster
    EXPECT_GE(step, 0);
    EXPECT_LE(step, 5);
  }
}

TEST(EasgdPreset, OneWorkerAloneLearnsToo) {
  const Plan plan{.samples = 100, .batch = 10, .shards = 1, .steps = 50};
  const Result result = Train(plan, 2, nullptr, nullptr);
  EXPECT_EQ(result.closed, 500);
  EXPECT_EQ(result.steps.size(), 50u);
  for (size_t i = 0; i < result.steps.size(); ++i) EXPECT_EQ(result.steps[i], int64_t(i));
  EXPECT_NEAR(result.state[1], 2, 0.5);
}

TEST(EasgdPreset, StopsEarlyResumesAndUsesTheRestOnce) {
  const Plan plan{.samples = 300, .batch = 30, .shards = 1, .steps = 40};
  toy::Memory saved;
  const Result half = Train(plan, 4, nullptr, &saved, /*stop_after=*/200);
  EXPECT_GE(half.closed, 200);
  EXPECT_LT(half.closed, 1200);
  EXPECT_EQ(saved.state, half.state);
  const Result whole = Train(plan, 3, &saved, nullptr);  // another number of workers
  EXPECT_EQ(whole.closed, 1200);
}

TEST(EasgdPreset, AResumedRunThatWasDoneHasNothingToDo) {
  const Plan plan{.samples = 60, .batch = 30, .shards = 1, .steps = 4};
  toy::Memory saved;
  Train(plan, 3, nullptr, &saved);
  const Result again = Train(plan, 3, &saved, nullptr);
  EXPECT_EQ(again.closed, 120);
  EXPECT_TRUE(again.steps.empty());
  EXPECT_EQ(again.state, saved.state);
  const Plan longer{.samples = 60, .batch = 30, .shards = 1, .steps = 6};
  const Result more = Train(longer, 3, &saved, nullptr);
  EXPECT_EQ(more.closed, 180);
}

TEST(EasgdPreset, AWorkerThatThrowsEndsTheJobWithItsError) {
  const toy::Model model(200);
  const Plan plan{.samples = 1000, .batch = 30, .shards = 1, .steps = 1000};
  const StrategyOptions options{.name = "easgd"};
  const StrategySetup setup{ResolveStrategy(options, {.ranks = 4}), plan, model.layout};
  try {
    RunRanks(4, /*timeout_s=*/3600, [&](World& world) {
      if (world.rank() == 0) return MakeServer(setup, world, model.initial)->Run(nullptr);
      const auto device = toy::Host();
      const auto strategy = MakeWorker(setup, world);
      toy::Worker worker(model, kOptimizer, plan, *device, *strategy);
      worker.before_last_bucket = [&](const Work&) {
        if (world.rank() == 2 && worker.step() == 5) throw Error("disk full");
      };
      worker.Start(model.initial, 0, nullptr);
      while (worker.Step() != Turn::kEnd) {
      }
      worker.Finish();
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "disk full (rank 2 of 4)");
  }
}

}  // namespace
}  // namespace trireme
