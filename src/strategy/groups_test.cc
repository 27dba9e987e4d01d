// Groups below a server sum their gradients as all ranks of `allreduce` do.
#include <gtest/gtest.h>

#include "base/error.h"
#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

// A server, groups of two and of three workers; the positions that count.
int64_t TrainGroups(const std::string& algorithm) {
  const toy::Model model(200);
  const Plan plan{.samples = 230, .batch = 40, .shards = 5, .steps = 18};
  StrategyOptions options{.name = "mpi-ps", .period = 3};
  options.groups = 2;
  options.algorithm = algorithm;
  const OptimizerOptions optimizer{.lr = 0.05, .momentum = 0};
  const Schedule schedule(optimizer, plan.steps_per_epoch(), plan.steps, plan.batch);
  StrategySetup setup{ResolveStrategy(options, {.ranks = 6}), plan, model.layout};
  setup.optimizer = &optimizer;
  setup.schedule = &schedule;
  int64_t positions = 0;
  RunRanks(6, 60, [&](World& world) {
    if (world.rank() == 0) {
      const auto server = MakeServer(setup, world, model.initial);
      server->Run(nullptr);
      positions = server->progress().positions;
      return;
    }
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    toy::Worker worker(model, optimizer, plan, *device, *strategy);
    worker.Start(model.initial, 0, nullptr);
    while (worker.Step() != Turn::kEnd) {
    }
    worker.Finish();
  });
  return positions;
}

TEST(Groups, SumByTheAlgorithmThatIsAskedFor) {
  for (const char* algorithm : {"auto", "shared", "ring", "halving-doubling", "tree", "chain"}) {
    EXPECT_EQ(TrainGroups(algorithm), 3 * 230) << algorithm;
  }
  EXPECT_THROW(TrainGroups("native"), Error);  // threads have none
}

}  // namespace
}  // namespace trireme
