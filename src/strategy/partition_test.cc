// A centre that lies on several servers, through the full seam, on a toy engine.
#include "strategy/server/partition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "strategy/server/parameter_server.h"
#include "strategy/server/protocol.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

TEST(PartitionOf, CoversTheStateInAlignedStretches) {
  for (const size_t floats : {64u, 100u, 1000u, 12345u}) {
    for (const int servers : {1, 2, 3, 4}) {
      size_t at = 0;
      for (int s = 0; s < servers; ++s) {
        const Range partition = PartitionOf(floats, s, servers);
        EXPECT_EQ(partition.begin, at);
        EXPECT_EQ(partition.begin % Layout::kAlignment, 0u);
        EXPECT_GT(partition.size, 0u);
        at = partition.end();
      }
      EXPECT_EQ(at, floats);
    }
  }
}

TEST(CutLayout, KeepsWhatDecaysAndWhatIsAStatistic) {
  Layout layout;
  layout.parameters = {{0, 40}, {48, 5}};
  layout.decays = {true, false};
  layout.statistics = {{64, 8}};
  layout.weights = 64;
  layout.state = 80;
  size_t weights = 0, decaying = 0, statistics = 0;
  for (int s = 0; s < 3; ++s) {
    const Layout cut = CutLayout(layout, PartitionOf(layout.state, s, 3));
    weights += cut.weights;
    EXPECT_EQ(cut.summand, cut.state + Layout::kStepMetrics);
    for (size_t p = 0; p < cut.parameters.size(); ++p) {
      EXPECT_LE(cut.parameters[p].end(), cut.weights);
      if (cut.decays[p]) decaying += cut.parameters[p].size;
    }
    for (const Range& range : cut.statistics) {
      EXPECT_GE(range.begin, cut.weights);
      statistics += range.size;
    }
  }
  EXPECT_EQ(weights, 64u);
  EXPECT_EQ(decaying, 40u);
  EXPECT_EQ(statistics, 8u);
}

// ---- whole runs

struct Trial {
  std::string name = "downpour", merge = "auto";
  int servers = 1, clients = 1;
  int push = 2, fetch = 2, period = 3;
  Plan plan{.samples = 230, .batch = 30, .shards = 1, .steps = 24};
  OptimizerOptions optimizer = {.lr = 0.05, .momentum = 0};
  const toy::Memory* resume = nullptr;
  toy::Memory* save = nullptr;  // at some moment of the run
};

struct Seen {
  std::vector<float> state;
  Server::Progress progress;
  std::vector<ClientStats> clients;
  int64_t saved_positions = 0;
  std::map<int64_t, int> counted;  // by position of the run
};

// Saves the server when it has got somewhere.
struct SavesOnce : ServerKeeper {
  explicit SavesOnce(toy::Memory* memory) : into(memory) {}
  void EpochEnded(const Server&) override {}
  void Look(const Server& server) override {
    if (!into || positions || server.progress().positions < 200) return;
    server.Gather();
    server.Save(*into);
    into->state.assign(server.centre().begin(), server.centre().end());
    positions = server.progress().positions;
  }
  bool Stop() override { return false; }
  toy::Memory* into;
  int64_t positions = 0;
};

Seen TrainOn(const Trial& trial) {
  const toy::Model model(200);
  StrategyOptions options{.name = trial.name, .push = trial.push, .fetch = trial.fetch};
  options.merge = trial.merge;
  options.period = trial.period;
  options.servers = trial.servers;
  const Schedule schedule(trial.optimizer, trial.plan.steps_per_epoch(), trial.plan.steps,
                          trial.plan.batch);
  StrategySetup setup{ResolveStrategy(options, {.ranks = trial.servers + trial.clients}),
                      trial.plan, model.layout};
  setup.optimizer = &trial.optimizer;
  setup.schedule = &schedule;
  Seen seen;
  RunRanks(trial.servers + trial.clients, kSoon, [&](World& world) {
    if (world.rank() < trial.servers) {
      const auto& begin = trial.resume ? trial.resume->state : model.initial;
      const auto server = MakeServer(setup, world, begin);
      SavesOnce keeper(trial.save);
      if (world.rank() > 0) return server->Run(nullptr);
      if (trial.resume) server->Load(*trial.resume);
      dynamic_cast<ParameterServer&>(*server).OnClose([&](const Lease& lease) {
        for (int64_t p = lease.begin; p < lease.end; ++p) {
          ++seen.counted[lease.epoch * trial.plan.samples + p];
        }
      });
      server->Run(&keeper);
      server->Gather();
      seen.state.assign(server->centre().begin(), server->centre().end());
      seen.progress = server->progress();
      seen.clients = server->clients();
      seen.saved_positions = keeper.positions;
      return;
    }
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    toy::Worker worker(model, trial.optimizer, trial.plan, *device, *strategy);
    worker.Start(model.initial, 0, nullptr);
    while (worker.Step() != Turn::kEnd) {
    }
    worker.Finish();
  });
  return seen;
}

const OptimizerOptions kAdagrad{.name = "adagrad", .lr = 0.1};

TEST(Partitions, OneClientHasTheBitsOfOneServer) {
  for (const OptimizerOptions& optimizer :
       {OptimizerOptions{.lr = 0.05, .momentum = 0}, kAdagrad,
        OptimizerOptions{.lr = 0.05, .momentum = 0, .weight_decay = 0.01}}) {
    for (const auto& [push, fetch] : {std::pair{2, 2}, {1, 1}, {3, 1}, {1, 4}}) {
      Trial trial{.push = push, .fetch = fetch, .optimizer = optimizer};
      const Seen one = TrainOn(trial);
      EXPECT_EQ(one.progress.positions, 3 * 230);
      EXPECT_NE(one.state, toy::Model(200).initial);
      for (const int servers : {2, 3}) {
        trial.servers = servers;
        const Seen several = TrainOn(trial);
        EXPECT_EQ(several.state, one.state) << optimizer.name << servers << push << fetch;
        EXPECT_EQ(several.progress.updates, one.progress.updates);
        EXPECT_EQ(several.clients[0].staleness.most(), one.clients[0].staleness.most());
      }
    }
  }
}

TEST(Partitions, OneClientOfAnElasticCentreHasTheBitsOfOneServer) {
  for (const int period : {1, 3}) {
    Trial trial{.name = "easgd", .period = period};
    const Seen one = TrainOn(trial);
    for (const int servers : {2, 3}) {
      trial.servers = servers;
      EXPECT_EQ(TrainOn(trial).state, one.state) << servers << period;
    }
  }
}

struct Preset {
  const char *name, *merge = "auto";
  OptimizerOptions optimizer = kAdagrad;
};
class ManyClients : public testing::TestWithParam<Preset> {};
INSTANTIATE_TEST_SUITE_P(
    Presets, ManyClients,
    testing::Values(Preset{"downpour"}, Preset{"easgd", "auto", {.lr = 0.05, .momentum = 0}},
                    Preset{"async-ps", "gradient"},
                    Preset{"async-ps", "halve", {.lr = 0.05, .momentum = 0}},
                    Preset{"async-ps", "average", {.lr = 0.05, .momentum = 0}}));
TEST_P(ManyClients, CountEveryPositionOnce) {
  const auto& [name, merge, optimizer] = GetParam();
  for (const int servers : {2, 3}) {
    const Seen seen = TrainOn(
        {.name = name, .merge = merge, .servers = servers, .clients = 4, .optimizer = optimizer});
    EXPECT_EQ(int64_t(seen.counted.size()), 3 * 230);
    for (const auto& [position, times] : seen.counted) EXPECT_EQ(times, 1) << position;
    EXPECT_EQ(seen.progress.epochs, 3);
    int64_t samples = 0, pushes = 0;
    for (const ClientStats& client : seen.clients) {
      samples += client.samples;
      pushes += client.pushes;
      EXPECT_EQ(client.refused, 0);
    }
    EXPECT_EQ(samples, 3 * 230);
    EXPECT_EQ(pushes, seen.progress.updates);
    // Its samples want it there.
    EXPECT_LT(std::abs(seen.state[1] - 2), std::abs(toy::Model(200).initial[1] - 2));
  }
}

// What is saved while the run goes on is what one server has after as many updates: all partitions
// of one moment. And it is a beginning for any number of servers.
TEST(Partitions, ASnapshotIsOneMomentAndFitsAnyNumberOfServers) {
  toy::Memory saved;
  const Trial trial{.servers = 3, .push = 1, .fetch = 1, .optimizer = kAdagrad, .save = &saved};
  const int64_t positions = TrainOn(trial).saved_positions;
  ASSERT_GE(positions, 200);
  Trial until{.push = 1, .fetch = 1, .optimizer = kAdagrad};
  const int64_t epoch = positions / 230, rest = positions % 230;
  until.plan.steps = epoch * 8 + (rest + 29) / 30;  // a step is a lease of one client
  const Seen same = TrainOn(until);
  ASSERT_EQ(same.progress.positions, positions);
  EXPECT_EQ(saved.state, same.state);
  for (const int servers : {1, 2, 4}) {
    const Seen whole =
        TrainOn({.servers = servers, .clients = 2, .optimizer = kAdagrad, .resume = &saved});
    EXPECT_EQ(whole.progress.positions, 3 * 230);
    EXPECT_EQ(int64_t(whole.counted.size()), 3 * 230 - positions);
    EXPECT_LT(std::abs(whole.state[1] - 2), std::abs(saved.state[1] - 2));  // and learns on
  }
}

// ---- a client by hand

class ByHand {
 public:
  ByHand(World& world, size_t floats)
      : first_(world.LinkTo(0)),
        second_(world.LinkTo(1)),
        own_(PartitionOf(floats, 0, 2)),
        other_(PartitionOf(floats, 1, 2)) {}
  Link& first() { return first_; }
  Link& second() { return second_; }

  int64_t Lease() {
    first_.Send({.kind = kAsk, .ints = {0, 1}});
    Message message;
    while (first_.Receive(message, After(kSoon)) == Arrival::kMessage) {
      if (message.kind == kGrant) return message.ints.at(1);
    }
    throw Error("no lease");
  }
  void Tell(int64_t lease, float value, size_t more = 0) {
    second_.Send({.kind = kPartition,
                  .ints = {lease},
                  .body = std::vector<float>(other_.size + more, value)});
  }
  void Push(int64_t lease, float value) {
    std::vector<int64_t> ints(PushHead::kInts);
    ints.push_back(lease);
    first_.Send({.kind = kPush, .ints = ints, .body = std::vector<float>(own_.size, value)});
  }
  // The next word of the first server that is no encouragement; -1: none so soon.
  int Word(double within_s) {
    Message message;
    while (first_.Receive(message, After(within_s)) == Arrival::kMessage) {
      if (message.kind != kWait) return message.kind;
    }
    return -1;
  }
  bool Refused() { return Word(kSoon) == kRefused; }
  bool Counts() {  // what was pushed before: fetches come after
    first_.Send({.kind = kFetch, .ints = {1}});
    return Word(kSoon) == kCentre;
  }

 private:
  Link &first_, &second_;
  const Range own_, other_;
};

TEST(Partitions, WhatDoesNotBelongIsRefusedAndHarmsNothing) {
  const toy::Model model(200);
  const Plan plan{.samples = 100, .batch = 10, .shards = 1, .steps = 100};
  StrategyOptions options{.name = "downpour", .push = 1, .fetch = 1};
  options.servers = 2;
  const OptimizerOptions optimizer{.lr = 1, .momentum = 0};
  const Schedule schedule(optimizer, 10, 100, 10);
  StrategySetup setup{ResolveStrategy(options, {.ranks = 3}), plan, model.layout};
  setup.optimizer = &optimizer;
  setup.schedule = &schedule;
  constexpr float kGood = 0.25f;
  RunRanks(3, kSoon, [&](World& world) {
    if (world.rank() == 1) return MakeServer(setup, world, model.initial)->Run(nullptr);
    if (world.rank() == 0) {
      const auto server = MakeServer(setup, world, model.initial);
      server->Run(nullptr);
      server->Gather();
      const auto& centre = dynamic_cast<ParameterServer&>(*server);
      EXPECT_EQ(centre.refused(), 5);
      EXPECT_EQ(centre.version(), 3);
      EXPECT_EQ(centre.leases().closed_positions(), 30);
      EXPECT_EQ(centre.leases().open(), 0);
      for (size_t j = 0; j < model.layout.weights; ++j) {
        EXPECT_EQ(server->centre()[j], ((model.initial[j] - kGood) - kGood) - kGood) << j;
      }
      return;
    }
    ByHand client(world, model.layout.state);
    int64_t lease = client.Lease();
    client.Tell(lease, NAN);  // one partition of it only
    client.Push(lease, kGood);
    EXPECT_TRUE(client.Refused());
    lease = client.Lease();
    client.Tell(lease, kGood);
    client.Push(lease, NAN);  // the other one
    EXPECT_TRUE(client.Refused());
    lease = client.Lease();
    client.Tell(lease, kGood, 1);  // of another shape
    client.Push(lease, kGood);
    EXPECT_TRUE(client.Refused());
    lease = client.Lease();
    client.Tell(lease + 1000, kGood);  // nobody's
    client.second().Send({.kind = 77});
    client.Tell(lease, kGood);
    client.Push(lease, kGood);
    EXPECT_TRUE(client.Counts());
    client.Tell(lease, kGood);  // again, when it has counted
    client.Push(lease, kGood);
    EXPECT_TRUE(client.Refused());
    lease = client.Lease();
    client.Push(lease, kGood);  // waits, and so does what comes after
    client.first().Send({.kind = kFetch, .ints = {5}});
    EXPECT_EQ(client.Word(0.1), -1);
    client.Tell(lease, kGood);
    EXPECT_EQ(client.Word(kSoon), kCentre);
    lease = client.Lease();
    client.Push(lease, kGood);
    client.first().Send({.kind = kAnew});  // its partition is lost, the client knows
    EXPECT_TRUE(client.Refused());
    client.Tell(lease, kGood);  // late
    lease = client.Lease();
    client.Tell(lease, kGood);
    client.Push(lease, kGood);
    EXPECT_TRUE(client.Counts());
    client.first().Send({.kind = kBye});
  });
}

TEST(Partitions, AreRefusedWhereTheyMeanNothing) {
  const auto why = [](StrategyOptions options) -> std::string {
    options.servers = 2;
    try {
      ResolveStrategy(options, {.ranks = 5}).workers();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(why({.name = "downpour"}), "");
  EXPECT_EQ(why({.name = "easgd"}), "");
  EXPECT_EQ(why({.name = "async-ps", .merge = "gradient"}), "");
  EXPECT_NE(why({.name = "ssp"}).find("pace"), std::string::npos);
  EXPECT_NE(why({.name = "federated"}).find("pace"), std::string::npos);
  EXPECT_NE(why({.name = "allreduce"}).find("no centre on servers"), std::string::npos);
  StrategyOptions many{.name = "downpour"};
  many.servers = 5;
  EXPECT_THROW(ResolveStrategy(many, {.ranks = 5}), UsageError);
  EXPECT_EQ(ResolveStrategy(many, {.ranks = 7}).workers(), 2);
}

}  // namespace
}  // namespace trireme
