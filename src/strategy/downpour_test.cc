// Downpour SGD through its preset: what a worker fetches holds what it has pushed.
#include <gtest/gtest.h>

#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

struct Pace {
  int servers, push, fetch;
};

// Three epochs, the last step of each a short one.
const Plan kPlan{.samples = 230, .batch = 30, .shards = 1, .steps = 24};

struct Outcome {
  std::vector<float> state;
  int64_t staleness = 0;  // at most
};

// With one worker.
Outcome TrainOne(const Pace& pace, const OptimizerOptions& optimizer) {
  const toy::Model model(200);
  StrategyOptions options{.name = "downpour", .push = pace.push, .fetch = pace.fetch};
  options.servers = pace.servers;
  const Schedule schedule(optimizer, kPlan.steps_per_epoch(), kPlan.steps, kPlan.batch);
  StrategySetup setup{ResolveStrategy(options, {.ranks = pace.servers + 1}), kPlan, model.layout};
  setup.optimizer = &optimizer;
  setup.schedule = &schedule;
  Outcome out;
  RunRanks(pace.servers + 1, kSoon, [&](World& world) {
    if (world.rank() < pace.servers) {
      const auto server = MakeServer(setup, world, model.initial);
      server->Run(nullptr);
      if (world.rank() > 0) return;
      server->Gather();
      out.state.assign(server->centre().begin(), server->centre().end());
      out.staleness = server->clients()[0].staleness.most();
      return;
    }
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    toy::Worker worker(model, optimizer, kPlan, *device, *strategy);
    worker.Start(model.initial, 0, nullptr);
    while (worker.Step() != Turn::kEnd) {
    }
    worker.Finish();
  });
  return out;
}

std::vector<float> TrainAlone(const OptimizerOptions& optimizer) {
  const toy::Model model(200);
  const StrategySetup setup{ResolveStrategy({.name = "allreduce"}, {.ranks = 1}), kPlan,
                            model.layout};
  std::vector<float> state;
  RunRanks(1, kSoon, [&](World& world) {
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    toy::Worker worker(model, optimizer, kPlan, *device, *strategy);
    worker.Start(model.initial, 0, nullptr);
    while (worker.Step() != Turn::kEnd) {
    }
    worker.Finish();
    state = worker.Snapshot();
  });
  return state;
}

TEST(Downpour, OneWorkerThatPushesAndFetchesInEveryStepHasTheBitsOfOneRank) {
  for (const OptimizerOptions& optimizer :
       {OptimizerOptions{.lr = 0.05, .momentum = 0},
        OptimizerOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01},
        OptimizerOptions{.name = "adagrad", .lr = 0.1},
        OptimizerOptions{.lr = 0.05, .momentum = 0, .schedule = "cosine"}}) {
    const std::vector<float> alone = TrainAlone(optimizer);
    for (const int servers : {1, 2}) {
      const Outcome one = TrainOne({servers, 1, 1}, optimizer);
      EXPECT_EQ(one.state, alone) << optimizer.name << " " << optimizer.schedule << servers;
      EXPECT_EQ(one.staleness, 0);
    }
  }
}

// With plain SGD the sum of several gradients moves the server as far as the worker has gone in the
// meantime, so that nothing of it is lost by a fetch. Epochs end between two pushes.
TEST(Downpour, FetchedWeightsAreWhereOneWorkerStands) {
  const OptimizerOptions optimizer{.lr = 0.05, .momentum = 0};
  const std::vector<float> alone = TrainAlone(optimizer);
  const size_t weights = toy::Model(200).layout.weights;
  for (const auto& [push, fetch] : {std::pair{1, 2}, {2, 2}, {3, 3}, {2, 4}, {3, 6}, {7, 7}}) {
    const Outcome one = TrainOne({1, push, fetch}, optimizer);
    for (size_t j = 0; j < weights; ++j) {
      ASSERT_NEAR(one.state[j], alone[j], 1e-5) << push << fetch << " " << j;
    }
    EXPECT_EQ(one.staleness == 0, push == fetch);
  }
}

}  // namespace
}  // namespace trireme
