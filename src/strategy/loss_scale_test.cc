// Gradients of a scaled loss through the full seam, on a toy engine that overflows as float16 does:
// a power of two as the scale changes no bit of what is learned.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "pretend/device.h"
#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "strategy/presets.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr double kNever_s = 3600;  // longer than a test may take
constexpr double kTooLarge = 0x1p30;

struct Case {
  std::string name;
  toy::MakeDevice device;
  StrategyOptions strategy;
  bool local = false;  // steps are one worker's own
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

std::unique_ptr<Device> Pretended() { return std::make_unique<PretendDevice>(); }

OptimizerOptions Plain() { return {.lr = 0.2, .momentum = 0}; }
OptimizerOptions Scaled(double scale) {
  OptimizerOptions options = Plain();
  options.scales_loss = true;
  options.loss_scale = scale;
  return options;
}

struct Config {
  int workers = 1;
  OptimizerOptions optimizer = Plain();
  int64_t steps = 12;
  toy::Memory* save = nullptr;
  int64_t save_at = -1;
  const toy::Memory* resume = nullptr;
  std::function<void(const Work&, const Shard&, std::span<float> summand)> after_backward;
};

struct Result {
  std::vector<std::vector<float>> states;  // by rank
  std::vector<Updater::ScaleOnHost> scales;
};

Result Train(const Case& c, const Config& run) {
  const toy::Model model(300, 1 << 7);
  const Plan plan{.samples = 100, .batch = 24, .shards = 6, .steps = run.steps};
  const InnerKind& inner = FindInner(FindPreset(c.strategy.name).inner);
  const int ranks = run.workers + inner.servers;
  const auto common = inner.common ? inner.common(ranks, kNever_s) : nullptr;
  const StrategySetup setup{
      ResolveStrategy(c.strategy, {.ranks = ranks, .optimizer = &run.optimizer}), plan,
      model.layout, common.get()};
  Result result;
  result.states.resize(size_t(ranks));
  result.scales.resize(size_t(ranks));
  RunRanks(ranks, kNever_s, [&](World& world) {
    const auto device = c.device();
    const auto strategy = MakeWorker(setup, world);
    toy::Worker worker(model, run.optimizer, plan, *device, *strategy);
    worker.after_backward = run.after_backward;
    worker.Start(run.resume ? run.resume->state : model.initial, run.resume ? run.resume->step : 0,
                 run.resume);
    while (worker.Step() == Turn::kStep) {
      if (run.save && worker.step() == run.save_at) worker.Save(*run.save);
    }
    worker.Finish();
    Replica& replica = worker.replica();
    result.scales[size_t(world.rank())] = replica.updater.GetScale(replica.queue);
    result.states[size_t(world.rank())] = worker.Snapshot();
  });
  return result;
}

class LossScale : public testing::TestWithParam<Case> {};

TEST_P(LossScale, ChangesNoBit) {
  for (const int workers : {1, 3}) {
    const Result plain = Train(GetParam(), {.workers = workers});
    const Result scaled = Train(GetParam(), {.workers = workers, .optimizer = Scaled(1024)});
    EXPECT_EQ(scaled.states, plain.states);
    for (const auto& scale : scaled.scales) {
      EXPECT_EQ(scale[UpdateScale::kLoss], 1024);
      EXPECT_EQ(scale[UpdateScale::kSkipped], 0);
    }
  }
}

TEST_P(LossScale, ThatIsTooLargeFallsByItselfAndGrowsAgain) {
  OptimizerOptions optimizer = Scaled(kTooLarge);
  optimizer.loss_scale_steps = 4;
  const Result result = Train(GetParam(), {.workers = 3, .optimizer = optimizer, .steps = 50});
  const std::vector<float>& state = result.states[0];
  for (size_t j = 0; j < 100; ++j) EXPECT_NEAR(state[j], float(1 + j % 3), 0.4) << j;
  for (size_t r = 0; r < result.states.size(); ++r) {
    EXPECT_EQ(result.states[r], state);
    const Updater::ScaleOnHost& scale = result.scales[r];
    EXPECT_EQ(scale[UpdateScale::kLoss], result.scales[0][UpdateScale::kLoss]) << r;
    EXPECT_GE(scale[UpdateScale::kSkipped], 14) << r;
    EXPECT_LE(scale[UpdateScale::kSkipped], 30) << r;
    EXPECT_LT(scale[UpdateScale::kLoss], 0x1p24f) << r;
    EXPECT_GT(scale[UpdateScale::kLoss], 0x1p12f) << "gradients became small, and it grew";
  }
}

// One shard of one rank: no rank takes the step, all scales fall.
TEST_P(LossScale, FallsOnAllWhenOneOverflows) {
  if (GetParam().local) return;
  const auto with_overflow = [&](float value) {
    Config run{.workers = 3, .optimizer = Scaled(1024), .steps = 9};
    run.after_backward = [value](const Work& work, const Shard& shard, std::span<float> summand) {
      if (work.step == 5 && shard.index == 3) summand[7] = value;
    };
    return Train(GetParam(), run);
  };
  const Result without = Train(GetParam(), {.workers = 3, .optimizer = Scaled(1024), .steps = 9});
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const Result result = with_overflow(value);
    EXPECT_NE(result.states[0], without.states[0]);
    for (size_t r = 0; r < result.states.size(); ++r) {
      EXPECT_EQ(result.states[r], result.states[0]);
      EXPECT_EQ(result.scales[r][UpdateScale::kLoss], 512);
      EXPECT_EQ(result.scales[r][UpdateScale::kSkipped], 1);
      EXPECT_EQ(result.scales[r][UpdateScale::kFinite], 3);
    }
    for (const float x : result.states[0]) ASSERT_TRUE(std::isfinite(x));
  }
}

TEST_P(LossScale, GoesOnFromACheckpointWithTheSameBits) {
  OptimizerOptions optimizer = Scaled(0x1p22);
  optimizer.loss_scale_steps = 5;
  const Config whole{.workers = 2, .optimizer = optimizer, .steps = 24};
  const Result undisturbed = Train(GetParam(), whole);
  for (const int64_t at : {4, 16}) {  // while it falls, and while it grows
    toy::Memory saved;
    Config first = whole;
    first.save = &saved;
    first.save_at = at;
    Train(GetParam(), first);
    Config second = whole;
    second.resume = &saved;
    const Result resumed = Train(GetParam(), second);
    EXPECT_EQ(resumed.states, undisturbed.states) << at;
    for (const size_t i : {UpdateScale::kLoss, UpdateScale::kFinite}) {
      EXPECT_EQ(resumed.scales[0][i], undisturbed.scales[0][i]) << at;
    }
    EXPECT_EQ(resumed.scales[0][UpdateScale::kSkipped],
              undisturbed.scales[0][UpdateScale::kSkipped]);
  }
}

StrategyOptions Of(const char* name, const char* algorithm = "auto", const char* merge = "auto") {
  StrategyOptions options{.name = name, .merge = merge};
  options.algorithm = algorithm;
  return options;
}
StrategyOptions LocalSgd() {
  StrategyOptions options{.name = "local-sgd", .period = 4};
  return options;
}

INSTANTIATE_TEST_SUITE_P(InStep, LossScale,
                         testing::Values(Case{"shared", toy::Host, Of("allreduce", "shared")},
                                         Case{"ring", toy::Host, Of("allreduce", "ring")},
                                         Case{"pretended_ring", Pretended, Of("allreduce", "ring")},
                                         Case{"sync_ps", toy::Host, Of("sync-ps")},
                                         Case{"sync_ps_difference", toy::Host,
                                              Of("sync-ps", "auto", "difference")},
                                         Case{"pretended_sync_ps", Pretended, Of("sync-ps")},
                                         Case{"bsp", toy::Host, Of("bsp")},
                                         Case{"local_sgd", toy::Host, LocalSgd(), true}),
                         testing::PrintToStringParamName());

// ---- clients of a server

struct Served {
  std::vector<float> centre;
  int64_t positions = 0, overflows = 0;
};

Served TrainServed(const StrategyOptions& options, int workers, const OptimizerOptions& optimizer,
                   const toy::MakeDevice& make_device = toy::Host) {
  const toy::Model model(200);
  const Plan plan{.samples = 230, .batch = 30, .shards = workers, .steps = 24};
  const Schedule schedule(optimizer, plan.steps_per_epoch(), plan.steps, plan.batch);
  StrategySetup setup{ResolveStrategy(options, {.ranks = 1 + workers}), plan, model.layout};
  setup.optimizer = &optimizer;
  setup.schedule = &schedule;
  Served out;
  RunRanks(1 + workers, kNever_s, [&](World& world) {
    if (world.rank() == 0) {
      const auto server = MakeServer(setup, world, model.initial);
      server->Run(nullptr);
      server->Gather();
      out.centre.assign(server->centre().begin(), server->centre().end());
      out.positions = server->progress().positions;
      for (const ClientStats& client : server->clients()) {
        out.overflows += client.overflows;
        EXPECT_EQ(client.refused, 0);
      }
      return;
    }
    const auto device = make_device();
    const auto strategy = MakeWorker(setup, world);
    toy::Worker worker(model, optimizer, plan, *device, *strategy);
    worker.Start(model.initial, 0, nullptr);
    while (worker.Step() != Turn::kEnd) {
    }
    worker.Finish();
  });
  return out;
}

// What overflows is not pushed: its lease is taken again, with a smaller scale, until it is right.
TEST(LossScaleOfClients, OverflowsAreTakenAgainAndChangeNoBit) {
  StrategyOptions downpour{.name = "downpour", .push = 1, .fetch = 1};
  StrategyOptions sums{.name = "downpour", .push = 2, .fetch = 2};
  StrategyOptions easgd{.name = "easgd", .period = 3};
  StrategyOptions federated{.name = "federated", .period = 3};
  StrategyOptions waits{.name = "downpour", .push = 1, .fetch = 1, .staleness = 1};
  waits.stale = "wait";
  for (const StrategyOptions& options :
       {downpour, sums, easgd, federated, waits, StrategyOptions{.name = "ssp"},
        StrategyOptions{.name = "async-ps"}}) {
    SCOPED_TRACE(options.name);
    const Served plain = TrainServed(options, 1, Plain());
    EXPECT_EQ(plain.overflows, 0);
    for (const toy::MakeDevice& device : {toy::MakeDevice(toy::Host), toy::MakeDevice(Pretended)}) {
      const Served scaled = TrainServed(options, 1, Scaled(0x1p24), device);
      // Its worker goes on with the newest broadcast, whenever that comes.
      if (options.name != "async-ps") {
        EXPECT_EQ(scaled.centre, plain.centre);
      }
      EXPECT_EQ(scaled.positions, plain.positions);
      EXPECT_GE(scaled.overflows, 8);
      EXPECT_LE(scaled.overflows, 16);
    }
  }
}

TEST(LossScaleOfClients, GroupsTakeALeaseAgainTogether) {
  StrategyOptions options{.name = "mpi-ps", .period = 3};
  options.groups = 2;
  const Served served = TrainServed(options, 4, Scaled(0x1p24));
  EXPECT_EQ(served.positions, 3 * 230);
  EXPECT_GE(served.overflows, 8);
  for (const float x : served.centre) ASSERT_TRUE(std::isfinite(x));
}

// An overflow that no scale can help is said, not repeated for ever.
TEST(LossScaleOfClients, WhatNeverFitsEndsTheRun) {
  const toy::Model model(200);
  const Plan plan{.samples = 230, .batch = 30, .shards = 1, .steps = 24};
  const OptimizerOptions optimizer = Scaled(1024);
  const Schedule schedule(optimizer, plan.steps_per_epoch(), plan.steps, plan.batch);
  StrategySetup setup{ResolveStrategy({.name = "downpour"}, {.ranks = 2}), plan, model.layout};
  setup.optimizer = &optimizer;
  setup.schedule = &schedule;
  try {
    RunRanks(2, kNever_s, [&](World& world) {
      if (world.rank() == 0) return MakeServer(setup, world, model.initial)->Run(nullptr);
      const auto device = toy::Host();
      const auto strategy = MakeWorker(setup, world);
      toy::Worker worker(model, optimizer, plan, *device, *strategy);
      worker.after_backward = [](const Work&, const Shard&, std::span<float> summand) {
        summand[0] = std::numeric_limits<float>::infinity();
      };
      worker.Start(model.initial, 0, nullptr);
      while (worker.Step() != Turn::kEnd) {
      }
      worker.Finish();
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("overflow fp16"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace trireme
