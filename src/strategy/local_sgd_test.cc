// Local SGD through the full seam on a toy engine: replicas step alone and meet at an anchor.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "pretend/device.h"
#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

struct LocalRun {
  int ranks = 3;
  std::string strategy = "local-sgd";
  int groups = 0;  // not 0: of workers that all-reduce
  int period = 5;
  float outer_lr = 1, outer_momentum = 0;
  Plan plan{.samples = 100, .batch = 24, .shards = 12, .steps = 40};
  OptimizerOptions optimizer{.lr = 0.1, .momentum = 0};
  bool pretend = false;
  bool look = false;  // take snapshots between meetings
  toy::Memory* save = nullptr;
  int64_t save_at = -1;
  const toy::Memory* resume = nullptr;
};

// The state of every rank after the run.
std::vector<std::vector<float>> Train(const LocalRun& run) {
  const toy::Model model(700);
  const StrategyOptions options{.name = run.strategy,
                                .inner = run.groups ? "allreduce" : "auto",
                                .period = run.period,
                                .groups = run.groups,
                                .outer_lr = run.outer_lr,
                                .outer_momentum = run.outer_momentum};
  const StrategySetup setup{ResolveStrategy(options, {.ranks = run.ranks}), run.plan, model.layout};
  std::vector<std::vector<float>> states(run.ranks), looks(run.ranks);
  RunRanks(run.ranks, 60, [&](World& world) {
    const auto device =
        run.pretend ? std::unique_ptr<Device>(std::make_unique<PretendDevice>()) : toy::Host();
    const auto strategy = MakeWorker(setup, world);
    EXPECT_TRUE(strategy->InStep());
    toy::Worker worker(model, run.optimizer, run.plan, *device, *strategy);
    worker.Start(run.resume ? run.resume->state : model.initial, run.resume ? run.resume->step : 0,
                 run.resume);
    EXPECT_TRUE(strategy->Agreed());
    while (worker.Step() == Turn::kStep) {
      if (run.strategy == "local-sgd" && run.period > 0) {
        EXPECT_EQ(strategy->Agreed(), worker.step() % run.period == 0);
      }
      if (run.look && worker.step() == 17) looks[world.rank()] = worker.Snapshot();
      if (run.save && worker.step() == run.save_at) worker.Save(*run.save);
    }
    worker.Finish();
    EXPECT_TRUE(strategy->Agreed());
    states[world.rank()] = worker.Snapshot();
  });
  for (const auto& state : states) EXPECT_EQ(state, states[0]);
  for (const auto& look : looks) EXPECT_EQ(look, looks[0]);
  return states;
}

double Furthest(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - b[i]));
  return most;
}

// The mean of moves by own gradients, weighted by samples, is the move by the gradient of all: also
// in the last step of an epoch, where shards are uneven and some workers have no sample.
TEST(LocalSgd, MeetingAfterEveryStepIsAllReduceToRounding) {
  for (bool pretend : {false, true}) {
    for (int64_t samples : {100, 97, 98}) {
      LocalRun run{.ranks = 4, .period = 1, .pretend = pretend};
      run.plan = {.samples = samples, .batch = 24, .shards = 4, .steps = 20};
      LocalRun reference = run;
      reference.strategy = "allreduce";
      const auto expected = Train(reference), trained = Train(run);
      // Of statistics the updates are averages of averages: compare weights.
      const size_t weights = toy::Model(700).layout.weights;
      double most = 0;
      for (size_t i = 0; i < weights; ++i) {
        most = std::max(most, std::abs(double(trained[0][i]) - expected[0][i]));
      }
      EXPECT_LT(most, 2e-5) << samples;
    }
  }
}

TEST(LocalSgd, AllReduceOfWeightsIsAMeetingAfterEveryStep) {
  LocalRun named{.strategy = "allreduce-weights", .period = -1};
  EXPECT_EQ(Train(named), Train({.period = 1}));
}

TEST(LocalSgd, GroupsOfOneAreWorkersAlone) {
  LocalRun alone{.ranks = 4};
  LocalRun grouped = alone;
  grouped.groups = 4;
  EXPECT_EQ(Train(alone), Train(grouped));
}

// Two groups are two workers with twice the share each, whichever members have no sample; one group
// is all-reduce, whatever it averages.
TEST(LocalSgd, AGroupIsOneWorkerThatHasTheSharesOfItsMembers) {
  for (bool pretend : {false, true}) {
    for (int64_t samples : {100, 97, 98}) {
      for (int groups : {1, 2}) {
        LocalRun run{.ranks = 4, .groups = groups, .period = 3, .pretend = pretend};
        run.plan = {.samples = samples, .batch = 24, .shards = 4, .steps = 20};
        LocalRun reference = run;
        reference.ranks = groups;
        reference.groups = 0;
        const auto expected = Train(reference), trained = Train(run);
        const size_t weights = toy::Model(700).layout.weights;
        double most = 0;
        for (size_t i = 0; i < weights; ++i) {
          most = std::max(most, std::abs(double(trained[0][i]) - expected[0][i]));
        }
        EXPECT_LT(most, 2e-5) << samples << " samples, " << groups << " groups";
      }
    }
  }
}

TEST(LocalSgd, OneWorkerIsOrdinaryTrainingToRounding) {
  LocalRun run{.ranks = 1, .period = 7};
  LocalRun reference = run;
  reference.strategy = "allreduce";
  EXPECT_LT(Furthest(Train(run)[0], Train(reference)[0]), 2e-5);
}

TEST(LocalSgd, ArrivesWithMomentumInsideAndOutside) {
  const toy::Model model(700);
  for (int period : {0, 3, 10}) {
    for (float outer : {0.0, 0.5}) {
      LocalRun run{.ranks = 4, .period = period, .outer_momentum = outer};
      run.plan.steps = 120;
      run.optimizer.momentum = 0.5;
      const auto trained = Train(run);
      double error = 0;
      const Range range = model.layout.parameters[0];
      for (size_t j = range.begin; j < range.end(); ++j) {
        double mean = 0;
        for (int64_t p = 0; p < 100; ++p) mean += toy::Target(23, p, j) / 100.0;
        error += std::abs(trained[0][j] - mean) / double(range.size);
      }
      EXPECT_LT(error, 0.25) << period << " " << outer;
    }
  }
}

// Outer momentum, one worker, one step a meeting: heavy-ball SGD.
TEST(LocalSgd, OuterMomentumIsMomentum) {
  LocalRun run{.ranks = 2, .period = 1, .outer_momentum = 0.8};
  LocalRun reference = run;
  reference.strategy = "allreduce";
  reference.optimizer.momentum = 0.8;
  const size_t weights = toy::Model(700).layout.weights;
  const auto a = Train(run), b = Train(reference);
  for (size_t i = 0; i < weights; ++i) ASSERT_NEAR(a[0][i], b[0][i], 1e-4) << i;
}

TEST(LocalSgd, ResumesToTheSameBits) {
  for (bool pretend : {false, true}) {
    LocalRun run{.outer_momentum = 0.5, .pretend = pretend};
    run.optimizer.momentum = 0.9;
    const auto whole = Train(run);
    toy::Memory saved;
    LocalRun first = run;
    first.save = &saved;
    first.save_at = 20;
    Train(first);
    LocalRun rest = run;
    rest.resume = &saved;
    EXPECT_EQ(Train(rest)[0], whole[0]);
  }
}

TEST(LocalSgd, ASnapshotBetweenMeetingsIsTheMeanAndChangesNothing) {
  LocalRun run;
  const auto undisturbed = Train(run);
  run.look = true;
  EXPECT_EQ(Train(run)[0], undisturbed[0]);
}

TEST(LocalSgd, RefusesWhatMakesNoSense) {
  EXPECT_THROW(ResolveStrategy({.name = "local-sgd"}, {.ranks = 2, .deterministic = true}),
               UsageError);
  EXPECT_THROW(ResolveStrategy({.name = "local-sgd", .sync_batch_norm = true}, {.ranks = 2}),
               UsageError);
  EXPECT_EQ(ResolveStrategy({.name = "local-sgd", .period = 0}, {.ranks = 2}).workers(), 2);
}

}  // namespace
}  // namespace trireme
