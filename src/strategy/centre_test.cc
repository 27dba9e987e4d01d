// Strategies with a server through the full seam: leases, drains, refusals, restarts, on a toy
// engine.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <latch>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "pretend/device.h"
#include "strategy/centre_server.h"
#include "strategy/composed.h"
#include "strategy/inner_alone.h"
#include "strategy/presets.h"
#include "strategy/protocol.h"
#include "strategy/toy_engine.h"
#include "transport/threads/run.h"
#include "transport/threads/wire.h"

namespace trireme {
namespace {

using std::chrono::milliseconds;

struct Case {
  std::string name;
  toy::MakeDevice device;
  StrategyOptions options;  // of a preset with a server
  OptimizerOptions optimizer = {.lr = 0.1, .momentum = 0.5};
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const OptimizerOptions kOptimizer{.lr = 0.1, .momentum = 0.5};

// How often each position of the run counted.
class Counter {
 public:
  explicit Counter(const Plan& plan) : samples_(plan.samples) {}
  void Close(const Lease& lease) {
    std::lock_guard lock(mutex_);
    for (int64_t p = lease.begin; p < lease.end; ++p) ++counted_[lease.epoch * samples_ + p];
  }
  void ExpectOnce(int64_t positions) {
    EXPECT_EQ(int64_t(counted_.size()), positions);
    for (const auto& [position, times] : counted_) EXPECT_EQ(times, 1) << position;
  }
  std::map<int64_t, int> counted() {
    std::lock_guard lock(mutex_);
    return counted_;
  }
  void Clear() {
    std::lock_guard lock(mutex_);
    counted_.clear();
  }

 private:
  const int64_t samples_;
  std::mutex mutex_;
  std::map<int64_t, int> counted_;
};

// A rank of a field: its link is a wire that the test may cut and renew.
class FieldWorld : public World {
 public:
  FieldWorld(std::vector<std::unique_ptr<Wire>>& wires, int rank) : wires_(wires), rank_(rank) {}
  Group& group() override { throw Error("a field has no group"); }
  int rank() override { return rank_; }
  int size() override { return int(wires_.size()) + 1; }
  Link& LinkTo(int rank) override {
    return rank_ == 0 ? wires_[rank - 1]->server() : wires_[rank_ - 1]->client();
  }

 private:
  std::vector<std::unique_ptr<Wire>>& wires_;
  const int rank_;
};

// A server and its clients on wires of their own, each on a thread.
class Field {
 public:
  Field(const Case& c, int clients, int period, double patience_s = 10)
      : case_(c),
        options(c.options),
        plan{.samples = 230, .batch = 30, .shards = clients, .steps = 24},
        schedule(c.optimizer, plan.steps_per_epoch(), plan.steps, plan.batch),
        counter(plan) {
    for (int i = 0; i < clients; ++i) wires.push_back(std::make_unique<Wire>(10, patience_s));
    options.period = period;
    if (options.name == "async-ps") options.push = period;
    for (int r = 0; r <= clients; ++r) worlds.push_back(std::make_unique<FieldWorld>(wires, r));
  }

  StrategySetup Setup() const {
    StrategySetup made{options, plan, model.layout};
    made.optimizer = &case_.optimizer;
    made.schedule = &schedule;
    return made;
  }

  std::unique_ptr<CentreServer> NewServer() {
    auto made = MakeServer(setup, *worlds[0], model.initial);
    std::unique_ptr<CentreServer> server(dynamic_cast<CentreServer*>(made.release()));
    server->OnClose([this](const Lease& lease) { counter.Close(lease); });
    return server;
  }

  // Runs client `i` to the end of the run; `each` sees every step before it is computed, false: the
  // client dies there, leaving its link closed.
  void RunClient(int i, std::function<bool(toy::Worker&)> each) {
    const auto device = case_.device();
    const auto strategy = MakeWorker(setup, *worlds[i + 1]);
    toy::Worker worker(model, case_.optimizer, plan, *device, *strategy);
    struct Death {};
    worker.before_shards = [&](const Work&) {
      if (!each(worker)) throw Death();
    };
    try {
      worker.Start(model.initial, 0, nullptr);
      while (worker.Step() != Turn::kEnd) {
      }
      worker.Finish();
      const auto state = worker.Snapshot();
      if (i == 0) final_state = state;
    } catch (const Death&) {
      wires[i]->client().Close();
    }
  }

  double DistanceToTargets(std::span<const float> state) const {
    double sum = 0;
    for (const Range& range : model.layout.parameters) {
      for (size_t j = range.begin; j < range.end(); ++j) {
        sum += std::abs(state[j] - float(1 + j % 3)) / double(model.layout.weights);
      }
    }
    return sum;
  }

  const Case& case_;
  StrategyOptions options;
  const Plan plan;
  const toy::Model model{200};
  const Schedule schedule;
  std::vector<std::unique_ptr<Wire>> wires;
  std::vector<std::unique_ptr<FieldWorld>> worlds;
  Counter counter;
  const StrategySetup setup = Setup();
  std::vector<float> final_state;
};

class Centre : public testing::TestWithParam<Case> {};

bool Go(toy::Worker&) { return true; }

struct CountEpochs : ServerKeeper {
  void EpochEnded(const Server& server) override {
    EXPECT_EQ(server.progress().epochs, ++ends);
    EXPECT_EQ(server.progress().positions, ends * 230);
    EXPECT_EQ(server.progress().samples, 230);
    EXPECT_GT(server.progress().loss_sum, 0);
  }
  void Look(const Server&) override {}
  bool Stop() override { return false; }
  int ends = 0;
};

// The others pause after a few steps until what the test is about has happened, whoever was faster.
void PauseUntil(const std::atomic<bool>& happened, int64_t steps) {
  std::this_thread::sleep_for(milliseconds(1));
  for (int i = 0; i < 10'000 && steps >= 5 && !happened; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST_P(Centre, EveryPositionCountsOnceAndEveryEpochEnds) {
  for (int period : {1, 3, 10}) {
    Field field(GetParam(), 4, period);
    CountEpochs keeper;
    auto server = field.NewServer();
    {
      std::vector<std::jthread> clients;
      for (int i = 0; i < 4; ++i) clients.emplace_back([&, i] { field.RunClient(i, Go); });
      server->Run(&keeper);
    }
    field.counter.ExpectOnce(3 * 230);
    EXPECT_EQ(keeper.ends, 2);  // the last one ends with the run
    EXPECT_EQ(server->progress().epochs, 3);
    EXPECT_EQ(server->progress().positions, 3 * 230);
    EXPECT_EQ(server->refused(), 0);
    EXPECT_TRUE(server->leases().finished());
    const int64_t pushes = server->staleness().updates();
    EXPECT_EQ(pushes, server->progress().updates);
    EXPECT_LE(server->version(), pushes);
    int64_t samples = 0;
    for (const ClientNumbers& client : server->clients()) samples += client.samples;
    EXPECT_EQ(samples, 3 * 230);
    EXPECT_TRUE(std::equal(field.final_state.begin(), field.final_state.end(),
                           server->centre().begin()));  // the last snapshot holds all
    EXPECT_LT(field.DistanceToTargets(server->centre()),
              0.5 * field.DistanceToTargets(field.model.initial));
  }
}

TEST_P(Centre, AClientThatDiesLeavesItsLeasesToOthers) {
  Field field(GetParam(), 3, 3);
  std::atomic<bool> died = false;
  auto server = field.NewServer();
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&, i] {
        field.RunClient(i, [&](toy::Worker& worker) {
          if (i == 1 && worker.step() == 4) died = true;  // amid a period: three leases are open
          if (i != 1) PauseUntil(died, worker.step());
          return i != 1 || !died;
        });
      });
    }
    server->Run(nullptr);
  }
  field.counter.ExpectOnce(3 * 230);
  EXPECT_TRUE(server->leases().finished());
}

TEST_P(Centre, AShortCutLosesNothing) {
  Field field(GetParam(), 3, 3);
  auto server = field.NewServer();
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&, i] {
        int steps = 0;
        field.RunClient(i, [&](toy::Worker&) {
          if (i == 1 && ++steps % 5 == 0) field.wires[1]->Cut(0.02);
          return true;
        });
      });
    }
    server->Run(nullptr);
  }
  field.counter.ExpectOnce(3 * 230);
  EXPECT_EQ(server->refused(), 0);
}

TEST_P(Centre, AWorkerThatWasGivenUpIsRefusedAndBeginsAnew) {
  Field field(GetParam(), 3, 4, /*patience_s=*/0.03);
  std::atomic<bool> cut = false;
  auto server = field.NewServer();
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&, i] {
        field.RunClient(i, [&](toy::Worker& worker) {
          if (i != 1) PauseUntil(cut, worker.step());
          if (i == 1 && worker.step() == 4) {  // holds leases
            field.wires[1]->Cut(0.15);
            cut = true;
            std::this_thread::sleep_for(milliseconds(200));
          }
          return true;
        });
      });
    }
    server->Run(nullptr);
  }
  field.counter.ExpectOnce(3 * 230);
  EXPECT_GE(server->refused(), 1);
}

TEST_P(Centre, ARestartedServerGoesOnFromItsSnapshot) {
  Field field(GetParam(), 3, 3);
  // The first server dies some closed leases after it has saved itself.
  struct Crash {};
  struct Keeper : ServerKeeper {
    void EpochEnded(const Server&) override {}
    void Look(const Server& server) override {
      if (saved || server.progress().positions < 100) return;
      server.Save(memory);
      memory.state.assign(server.centre().begin(), server.centre().end());
      saved = true;
    }
    bool Stop() override { return false; }
    toy::Memory memory;
    bool saved = false;
  } keeper;
  int since = 0;
  auto server = field.NewServer();
  server->OnClose([&](const Lease& lease) {
    field.counter.Close(lease);
    if (keeper.saved && ++since == 5) throw Crash();
  });
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&, i] { field.RunClient(i, Go); });
    }
    EXPECT_THROW(server->Run(&keeper), Crash);
    server = field.NewServer();
    server->Load(keeper.memory);
    const int64_t closed = server->leases().closed_positions();
    EXPECT_GE(closed, 100);
    EXPECT_LT(closed, int64_t(field.counter.counted().size()));  // all since the snapshot is lost
    field.counter.Clear();
    for (auto& wire : field.wires) wire->Renew();
    server->Run(nullptr);
    // Since the restart exactly those positions counted that the snapshot does not hold.
    const auto again = field.counter.counted();
    EXPECT_EQ(int64_t(again.size()), 3 * 230 - closed);
    for (const auto& [position, times] : again) EXPECT_EQ(times, 1) << position;
  }
  EXPECT_TRUE(server->leases().finished());
  EXPECT_EQ(server->leases().closed_positions(), 3 * 230);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto pretend = [] { return std::make_unique<PretendDevice>(); };
  const auto add = [&](const char* name, const StrategyOptions& options,
                       const OptimizerOptions& optimizer = {.lr = 0.1, .momentum = 0.5}) {
    cases.push_back({std::string(name) + "_host", toy::Host, options, optimizer});
    cases.push_back({std::string(name) + "_pretend", pretend, options, optimizer});
  };
  add("elastic", {.name = "easgd", .alpha = 0.3f});
  add("halve", {.name = "async-ps"});
  add("average", {.name = "async-ps", .merge = "average"});
  add("gradient", {.name = "async-ps", .merge = "gradient"}, {.lr = 0.02, .momentum = 0});
  add("wait", {.name = "async-ps", .merge = "gradient", .staleness = 1, .stale = "wait"},
      {.lr = 0.02, .momentum = 0});
  add("elastic_wait", {.name = "easgd", .alpha = 0.3f, .staleness = 0, .stale = "wait"});
  add("downpour", {.name = "downpour", .push = 3, .fetch = 2}, {.lr = 0.02, .momentum = 0});
  add("clock", {.name = "ssp", .staleness = 2});
  add("round", {.name = "federated", .outer_momentum = 0.3f});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, Centre, testing::ValuesIn(Cases()),
                         testing::PrintToStringParamName());

// ---- staleness that waits

TEST(StaleWait, NoUpdateIsStalerThanTheBound) {
  for (const int64_t bound : {0, 1, 2, 7}) {
    for (const int period : {1, 3}) {
      const Case c{"wait",
                   toy::Host,
                   {.name = "async-ps", .merge = "gradient", .staleness = bound, .stale = "wait"},
                   {.lr = 0.02, .momentum = 0}};
      Field field(c, 4, period);
      auto server = field.NewServer();
      std::latch all_hold_weights(4);
      {
        std::vector<std::jthread> clients;
        for (int i = 0; i < 4; ++i) {
          clients.emplace_back([&, i] {
            field.RunClient(i, [&](toy::Worker& worker) {
              if (bound == 7 && worker.step() == 0) all_hold_weights.arrive_and_wait();
              if (i == 2) std::this_thread::sleep_for(milliseconds(2));  // one is slow
              return true;
            });
          });
        }
        server->Run(nullptr);
      }
      field.counter.ExpectOnce(3 * 230);
      EXPECT_EQ(server->refused(), 0);
      EXPECT_LE(server->staleness().most(), bound) << period;
      EXPECT_TRUE(bound < 7 || server->staleness().most() > 0);  // three pushed what had aged
    }
  }
}

// ---- workers in groups

TEST(LeaseTeams, GroupsSumTheirGradientsAndEveryPositionCountsOnce) {
  for (const char* merge : {"elastic", "gradient", "average"}) {
    const toy::Model model(200);
    const Plan plan{.samples = 230, .batch = 40, .shards = 5, .steps = 18};
    StrategyOptions options{.name = "mpi-ps", .merge = merge, .period = 3, .alpha = 0.4f};
    options.groups = 2;  // of two and of three workers
    const OptimizerOptions optimizer{.lr = 0.05, .momentum = 0};
    const Schedule schedule(optimizer, plan.steps_per_epoch(), plan.steps, plan.batch);
    StrategySetup setup{options, plan, model.layout};
    setup.optimizer = &optimizer;
    setup.schedule = &schedule;
    std::vector<int64_t> samples(6);
    std::vector<std::vector<float>> states(6);
    RunRanks(6, 60, [&](World& world) {
      if (world.rank() == 0) {
        const auto server = MakeServer(setup, world, model.initial);
        server->Run(nullptr);
        EXPECT_EQ(server->progress().positions, 3 * 230) << merge;
        EXPECT_EQ(server->clients().size(), 2u);
        return;
      }
      const auto device = toy::Host();
      const auto strategy = MakeWorker(setup, world);
      toy::Worker worker(model, optimizer, plan, *device, *strategy);
      worker.Start(model.initial, 0, nullptr);
      while (worker.Step() != Turn::kEnd) {
        samples[world.rank()] += worker.replica().work.shards[0].size();
      }
      worker.Finish();
      const auto state = worker.replica().state.host();
      states[world.rank()].assign(state.begin(), state.end());
    });
    EXPECT_EQ(std::accumulate(samples.begin(), samples.end(), int64_t{0}), 3 * 230) << merge;
    if (std::string_view(merge) == "gradient") {  // nobody else moves the replicas
      EXPECT_EQ(states[1], states[2]);
      EXPECT_EQ(states[3], states[5]);
    }
  }
}

// ---- through the preset: ranks of a threads world

struct Result {
  std::vector<float> state;
  int64_t closed = 0;
  std::vector<int64_t> steps;  // of worker 0
};

Result Train(const Plan& plan, int ranks, const toy::Memory* resume, toy::Memory* save,
             int64_t stop_after = -1) {
  const toy::Model model(200);
  const StrategyOptions options{.name = "easgd", .period = 3};
  const StrategySetup setup{options, plan, model.layout, false};
  Result result;
  struct Keeper : ServerKeeper {
    void EpochEnded(const Server&) override {}
    void Look(const Server& server) override {
      stop |= limit >= 0 && server.progress().positions >= limit;
    }
    bool Stop() override { return stop; }
    int64_t limit = -1;
    bool stop = false;
  } keeper;
  if (stop_after >= 0) keeper.limit = stop_after;
  RunRanks(ranks, 20, [&](World& world) {
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
  const StrategySetup setup{options, plan, model.layout, false};
  const auto start = std::chrono::steady_clock::now();
  try {
    RunRanks(4, 60, [&](World& world) {
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
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
}

// ---- the server's door

CentreServer::Setup OneClient(Wire& wire) {
  return {.clients = {&wire.server()},
          .plan = {.samples = 100, .batch = 10, .shards = 1, .steps = 10},
          .positions = 100,
          .rule = [](Device&) { return MakeAddRule(); }};
}

TEST(CentreServerTest, RefusesWhatDoesNotBelong) {
  Wire wire(10, 10);
  CentreServer::Setup setup = OneClient(wire);
  setup.lease = 10;
  const std::vector<float> start(32, 1.0f);
  CentreServer server(std::move(setup), start);
  std::jthread thread([&] { server.Run(nullptr); });

  Link& link = wire.client();
  const auto lease = [&] {
    link.Send({.kind = kAsk, .ints = {0}});
    Message message;
    EXPECT_EQ(link.Receive(message, After(5)), Arrival::kMessage);
    EXPECT_EQ(message.kind, kGrant);
    EXPECT_EQ(message.ints.size(), 4u);  // one at a time unless more are wanted
    return message.ints.at(1);
  };
  const auto refused = [&](Message message) {
    link.Send(std::move(message));
    Message answer;
    return link.Receive(answer, After(0.2)) == Arrival::kMessage && answer.kind == kRefused;
  };
  const std::vector<float> good(32, 0.5f);
  std::vector<float> nan = good;
  nan[31] = NAN;
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, 0, 0, lease() + 1}, .body = good}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, 0, 0, lease()}, .body = nan}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, 0, 0, lease()}, .body = std::vector<float>(31)}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {1, 0, 0, lease()}, .body = good}));  // of the future
  EXPECT_TRUE(refused({.kind = kPush, .ints = {-1, 0, 0, lease()}, .body = good}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, 0, 0}, .body = good}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {}, .body = good}));
  const int64_t id = lease();
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, 0, 0, id, id}, .body = good}));
  EXPECT_TRUE(
      refused({.kind = kPush, .ints = {0, 0, 0, id}, .body = good}));  // void since the refusal
  EXPECT_TRUE(refused({.kind = 77}));
  EXPECT_TRUE(refused({.kind = -1}));
  EXPECT_FALSE(refused({.kind = kPush, .ints = {0, 0, 0, lease()}, .body = good}));
  link.Send({.kind = kBye});
  thread.join();
  EXPECT_EQ(server.version(), 1);
  EXPECT_EQ(server.refused(), 11);
  EXPECT_EQ(server.leases().closed_positions(), 10);
  EXPECT_EQ(server.leases().open(), 0);
  for (float value : server.centre()) EXPECT_EQ(value, 1.5f);
}

// One that was let in and says anything: half true, out of turn, of another shape. The centre stays
// finite, no position counts twice, and the server goes on.
TEST(CentreServerTest, StandsAClientThatSaysAnything) {
  for (const auto stale : {CentreServer::Stale::kTake, CentreServer::Stale::kWait}) {
    Wire wire(10, 10);
    CentreServer::Setup setup = OneClient(wire);
    setup.plan.steps = 1000;
    setup.positions = PositionsOf(setup.plan);
    setup.lease = 3;
    setup.staleness = 1;
    setup.stale = stale;
    Counter counter(setup.plan);
    CentreServer server(std::move(setup), std::vector<float>(32, 1.0f));
    server.OnClose([&](const Lease& lease) { counter.Close(lease); });
    std::jthread thread([&] { server.Run(nullptr); });
    std::mt19937 random(5);
    std::vector<int64_t> numbers = {0, 1, -1, INT64_MIN, INT64_MAX};  // and what it was told
    const auto any = [&] { return numbers[random() % numbers.size()]; };
    for (int i = 0; i < 3000; ++i) {
      Message message{.kind = int(random() % 8) - 1};
      if (random() % 2) message.kind = kPush;
      if (random() % 4 == 0) message.kind = kAsk;
      if (message.kind == kBye) continue;
      for (unsigned n = random() % 6; n > 0; --n) message.ints.push_back(any());
      if (message.kind == kPush && message.ints.size() > 2) {
        message.ints[1] = message.ints[2] = BitsOf(1.0);
      }
      const float value = random() % 40 ? 0.001f : NAN;
      message.body.assign(random() % 4 ? 32 : random() % 64, value);
      wire.client().Send(std::move(message));
      Message answer;
      while (wire.client().Receive(answer, After(i % 20 ? 0 : 0.002)) == Arrival::kMessage) {
        numbers.insert(numbers.end(), answer.ints.begin(), answer.ints.end());
        if (numbers.size() > 12) numbers.erase(numbers.begin() + 5, numbers.end() - 7);
      }
    }
    // And then the truth, which counts.
    Message answer;
    const auto await = [&](int kind) {
      do {
        ASSERT_EQ(wire.client().Receive(answer, After(10)), Arrival::kMessage);
      } while (answer.kind != kind);
    };
    wire.client().Send({.kind = kLeave});
    wire.client().Send({.kind = 77});
    await(kRefused);
    while (wire.client().Receive(answer, After(0.05)) == Arrival::kMessage) {
    }
    wire.client().Send({.kind = kAsk, .ints = {0}});
    await(kGrant);
    const int64_t id = answer.ints.at(1);
    wire.client().Send({.kind = kFetch, .ints = {7, 1}});
    await(kCentre);
    const int64_t version = answer.ints.at(0);
    wire.client().Send({.kind = kPush,
                        .ints = {version, BitsOf(1.0), BitsOf(1.0), id},
                        .body = std::vector<float>(32, 0.5f)});
    wire.client().Send({.kind = kBye});
    thread.join();
    EXPECT_GT(server.refused(), 100);
    EXPECT_EQ(server.version(), version + 1);
    for (const auto& [position, times] : counter.counted()) ASSERT_EQ(times, 1) << position;
    EXPECT_EQ(int64_t(counter.counted().size()), server.leases().closed_positions());
    EXPECT_EQ(server.leases().open(), 0);
    for (const float value : server.centre()) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(CentreServerTest, BoundsStaleness) {
  for (const auto stale :
       {CentreServer::Stale::kTake, CentreServer::Stale::kScale, CentreServer::Stale::kDrop}) {
    Wire wire(10, 10);
    CentreServer::Setup setup = OneClient(wire);
    setup.lease = 10;
    setup.staleness = 1;
    setup.stale = stale;
    const std::vector<float> start(32, 0.0f), one(32, 1.0f);
    CentreServer server(std::move(setup), start);
    std::jthread thread([&] { server.Run(nullptr); });
    Link& link = wire.client();
    for (int i = 0; i < 4; ++i) {  // all from version 0: 0, 1, 2, 3 behind
      link.Send({.kind = kAsk, .ints = {0}});
      Message message;
      do {
        ASSERT_EQ(link.Receive(message, After(10)), Arrival::kMessage);
      } while (message.kind != kGrant);
      link.Send({.kind = kPush, .ints = {0, 0, 0, message.ints.at(1)}, .body = one});
    }
    link.Send({.kind = kBye});
    thread.join();
    const bool drops = stale == CentreServer::Stale::kDrop;
    EXPECT_EQ(server.refused(), drops ? 2 : 0);
    EXPECT_EQ(server.leases().closed_positions(), drops ? 20 : 40);
    EXPECT_EQ(server.leases().open(), 0);
    const float centre = drops ? 2 : stale == CentreServer::Stale::kTake ? 4 : 2 + 2 / 3.f + 0.5f;
    EXPECT_NEAR(server.centre()[0], centre, 1e-6);
    const Staleness seen = server.staleness();
    EXPECT_EQ(seen.most(), drops ? 1 : 3);
    EXPECT_NEAR(seen.mean(), drops ? 0.5 : 1.5, 1e-9);
  }
}

// A client asks once. If it was given up meanwhile and is back, in the same life, it still waits.
TEST(CentreServerTest, AnswersWhatAClientAskedBeforeItWasAway) {
  struct Watcher : ServerKeeper {
    bool Stop() override { return false; }
    void EpochEnded(const Server&) override {}
    void Look(const Server& server) override { second_is_here = server.clients()[1].here; }
    std::atomic<bool> second_is_here = true;
  } watcher;
  Wire first(10, 10), second(10, 0.01);
  CentreServer::Setup setup = OneClient(first);
  setup.clients.push_back(&second.server());
  setup.lease = 100;  // all there is
  const std::vector<float> start(32, 1.0f);
  CentreServer server(std::move(setup), start);
  const std::jthread thread([&] { server.Run(&watcher); });
  const struct Leaving {  // also when an assertion ends the test
    Wire &first, &second;
    ~Leaving() {
      for (Wire* wire : {&first, &second}) wire->client().Send({.kind = kBye});
    }
  } leaving{first, second};

  Message message;
  first.client().Send({.kind = kAsk, .ints = {0}});
  ASSERT_EQ(first.client().Receive(message, After(10)), Arrival::kMessage);
  ASSERT_EQ(message.kind, kGrant);
  second.client().Send({.kind = kAsk, .ints = {0}});
  second.client().Send({.kind = kFetch, .ints = {0}});  // answered: the server has read the first
  ASSERT_EQ(second.client().Receive(message, After(10)), Arrival::kMessage);
  ASSERT_EQ(message.kind, kCentre);

  second.Cut(1000);
  const auto deadline = After(10);
  while (watcher.second_is_here && After(0) < deadline) std::this_thread::yield();
  ASSERT_FALSE(watcher.second_is_here);
  second.Cut(0);  // it is mended
  first.client().Send({.kind = kLeave});
  do {
    const Arrival arrival = second.client().Receive(message, After(5));
    ASSERT_NE(arrival, Arrival::kNothing) << "the server has forgotten what it was asked";
    if (arrival != Arrival::kMessage) message = {};
  } while (message.kind != kGrant);
}

TEST(CentreServerTest, EndsARunWhoseWorkersOnlyDiverge) {
  Wire wire(10, 10);
  CentreServer::Setup setup = OneClient(wire);
  const std::vector<float> start(32, 1.0f);
  CentreServer server(std::move(setup), start);
  std::jthread client([&] {
    Link& link = wire.client();
    Message message;
    for (int i = 0; i < 1000; ++i) {
      link.Send({.kind = kAsk, .ints = {0}});
      while (link.Receive(message, After(0.3)) == Arrival::kMessage && message.kind != kGrant) {
      }
      if (message.kind != kGrant) return;
      const std::vector<float> inf(32, INFINITY);
      link.Send({.kind = kPush, .ints = {0, 0, 0, message.ints.at(1)}, .body = inf});
      message = {};
    }
  });
  try {
    server.Run(nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("optimizer.lr"), std::string::npos) << error.what();
  }
}

TEST(CentreServerTest, WithoutClientsItGivesUpAndSaysSo) {
  Wire wire(0.1, 10);
  CentreServer::Setup setup = OneClient(wire);
  const std::vector<float> start(32, 1.0f);
  CentreServer server(std::move(setup), start);
  wire.client().Close();
  EXPECT_THROW(server.Run(nullptr), PeerLost);
}

TEST(ClientTest, GivesUpASilentServerAfterTheDeadline) {
  Wire wire(0.05, 10);
  Client client(wire.client());
  EXPECT_THROW(client.Fetch(32), PeerLost);
  Lease lease;
  EXPECT_THROW(client.Claim(false, lease), PeerLost);
}

}  // namespace
}  // namespace trireme
