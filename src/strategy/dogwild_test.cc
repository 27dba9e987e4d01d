// Teams that share weights without locks, and a server above them, on a toy engine.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <numeric>
#include <set>

#include "base/error.h"
#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "strategy/server/parameter_server.h"
#include "transport/check/with_memory.h"
#include "transport/collective/broadcast.h"
#include "transport/memory/box.h"
#include "transport/shared_memory.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

struct Outcome {
  std::vector<int> counted;  // by position of the run
  Server::Progress progress;
  std::vector<ClientStats> clients;
  std::vector<float> state;
  std::vector<const float*> weights;  // where each worker's are
  int64_t refused = 0;
};

enum class At { kServer, kMemory };

// Five workers in two groups. `each` sees every step of a worker; false: it ends there.
Outcome TrainTeams(int push, int servers, std::function<bool(int worker, int64_t step)> each = {},
                   At place = At::kServer) {
  const toy::Model model(200);
  const Plan plan{.samples = 230, .batch = 40, .shards = 5, .steps = 30};
  StrategyOptions options{.name = "dogwild", .push = push};
  if (place == At::kMemory) {
    options.centre = "memory";
    options.period = push;
  }
  options.groups = 2;
  options.servers = servers;
  // So little that the centre comes nearer also if groups that the machine leaves waiting push all
  // their gradients from its first weights.
  const OptimizerOptions optimizer{.lr = 0.01, .momentum = 0};
  const Schedule schedule(optimizer, plan.steps_per_epoch(), plan.steps, plan.batch);
  StrategySetup setup{ResolveStrategy(options, {.ranks = servers + 5}), plan, model.layout};
  setup.optimizer = &optimizer;
  setup.schedule = &schedule;
  Outcome out;
  out.counted.resize(5 * 230);
  out.weights.resize(5);
  MemoryBox box(MemoryBoxSetup{});
  RunRanks(servers + 5, kSoon, [&](World& ranks) {
    const auto memory = box.Connect();
    WithMemory world(ranks, *memory);
    if (world.rank() < servers) {
      const auto server = MakeServer(setup, world, model.initial);
      if (world.rank() > 0) return server->Run(nullptr);
      auto& centre = dynamic_cast<ParameterServer&>(*server);
      centre.OnClose([&](const Lease& lease) {
        for (int64_t p = lease.begin; p < lease.end; ++p) {
          ++out.counted.at(size_t(lease.epoch * plan.samples + p));
        }
      });
      server->Run(nullptr);
      server->Gather();
      out.progress = server->progress();
      out.clients = server->clients();
      out.refused = centre.refused();
      out.state.assign(server->centre().begin(), server->centre().end());
      return;
    }
    const int own = world.rank() - servers;
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    EXPECT_TRUE(strategy->SharesState());
    toy::Worker worker(model, optimizer, plan, *device, *strategy);
    worker.Start(model.initial, 0, nullptr);
    out.weights[size_t(own)] = worker.replica().state.data;
    while (worker.Step() != Turn::kEnd) {
      if (each && !each(own, worker.step())) strategy->Stop();
    }
    worker.Finish();
  });
  return out;
}

void ExpectOnce(const Outcome& out) {
  EXPECT_EQ(out.progress.positions, 5 * 230);
  for (const int times : out.counted) EXPECT_EQ(times, 1);
  int64_t samples = 0;
  for (const ClientStats& client : out.clients) samples += client.samples;
  EXPECT_EQ(samples, 5 * 230);
  EXPECT_EQ(out.refused, 0);
}

TEST(Dogwild, GroupsShareWeightsAndEveryPositionCountsOnce) {
  for (const int push : {1, 3}) {
    for (const int servers : {1, 2}) {
      const Outcome out = TrainTeams(push, servers);
      ExpectOnce(out);
      EXPECT_EQ(out.clients.size(), 5u);  // every worker has leases of its own
      const std::set<const float*> first(out.weights.begin(), out.weights.begin() + 2);
      const std::set<const float*> second(out.weights.begin() + 2, out.weights.end());
      EXPECT_EQ(first.size(), 1u);
      EXPECT_EQ(second.size(), 1u);
      EXPECT_NE(first, second);
      // Its samples want it there.
      EXPECT_LT(std::abs(out.state[1] - 2), std::abs(toy::Model(200).initial[1] - 2));
    }
  }
}

TEST(Dogwild, GroupsAddTheirMovesToACentreInMemory) {
  for (const int period : {1, 3}) {
    const Outcome out = TrainTeams(period, 1, {}, At::kMemory);
    ExpectOnce(out);
    EXPECT_EQ(std::set<const float*>(out.weights.begin(), out.weights.begin() + 2).size(), 1u);
    EXPECT_EQ(std::set<const float*>(out.weights.begin() + 2, out.weights.end()).size(), 1u);
    EXPECT_LT(std::abs(out.state[1] - 2), std::abs(toy::Model(200).initial[1] - 2));
  }
}

TEST(Dogwild, AWorkerThatLeavesIsMissedByNobody) {
  for (const At centre : {At::kServer, At::kMemory}) {
    for (const int leaver : {0, 1}) {  // also the one that brings the centre's weights
      const auto stays = [&](int worker, int64_t step) { return worker != leaver || step < 3; };
      ExpectOnce(TrainTeams(1, 1, stays, centre));
    }
  }
}

TEST(Dogwild, NeedsMemoryThatAGroupShares) {
  StrategyOptions options{.name = "dogwild"};
  EXPECT_EQ(ResolveStrategy(options, {.ranks = 5}).workers(), 4);
  options.groups = 5;
  EXPECT_THROW(ResolveStrategy(options, {.ranks = 5}), UsageError);
  options = {.name = "easgd", .inner = "hogwild"};
  EXPECT_THROW(ResolveStrategy(options, {.ranks = 5}), UsageError);
  options = {.name = "ssp", .inner = "hogwild"};
  EXPECT_THROW(ResolveStrategy(options, {.ranks = 5}), UsageError);
  EXPECT_THROW(ResolveStrategy({.name = "dogwild"}, {.ranks = 5, .deterministic = true}),
               UsageError);
}

// What a part of a group does in the memory of all.
TEST(PartOfAGroup, HasTheCommonMemory) {
  RunRanks(5, kSoon, [](World& world) {
    const auto part = world.group().Split(world.rank() % 2);
    SharedMemory* const memory = part->shared_memory();
    ASSERT_TRUE(memory);
    const auto shared = AllocateForAll(*part, 0, 16);
    shared[size_t(part->rank())] = float(world.rank());
    const auto own = memory->Allocate(3), more = memory->Allocate(3);
    std::fill(own.begin(), own.end(), float(1 + world.rank()));
    std::fill(more.begin(), more.end(), 0.5f);
    const std::vector<std::span<float>> parts{own, more};
    memory->SumInOrder(parts, own);
    const float sum = world.rank() % 2 ? 2 + 4 + 2 * 0.5f : 1 + 3 + 5 + 3 * 0.5f;
    for (const float value : own) EXPECT_EQ(value, sum);
    for (int r = 0; r < part->size(); ++r) {  // after the meeting in SumInOrder
      EXPECT_EQ(shared[size_t(r)], float(2 * r + world.rank() % 2));
    }
  });
}

}  // namespace
}  // namespace trireme
