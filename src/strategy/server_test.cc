// Strategies with a server through the full seam: leases, drains, refusals, restarts, on a toy
// engine.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <map>
#include <numeric>
#include <optional>
#include <thread>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "pretend/device.h"
#include "strategy/check/counted_once.h"
#include "strategy/check/toy_engine.h"
#include "strategy/inner/alone.h"
#include "strategy/make.h"
#include "strategy/server/parameter_server.h"
#include "transport/check/with_memory.h"
#include "transport/memory/box.h"
#include "transport/threads/run.h"
#include "transport/threads/thread_link.h"

namespace trireme {
namespace {

using std::chrono::milliseconds;

constexpr double kSoon = 60;  // a busy machine must not make a test fail

struct Case {
  std::string name;
  toy::MakeDevice device;
  StrategyOptions options;  // of a preset with a server
  OptimizerOptions optimizer = {.lr = 0.1, .momentum = 0.5};
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// A rank of a field: its link is a wire that the test may cut and renew, its memory a box's.
class FieldWorld : public World {
 public:
  FieldWorld(std::vector<std::unique_ptr<ThreadLink>>& wires, MemoryBox* box, int rank)
      : wires_(wires), rank_(rank), memory_(box ? box->Connect() : nullptr) {}
  Group& group() override { throw Error("a field has no group"); }
  int rank() override { return rank_; }
  int size() override { return int(wires_.size()) + 1; }
  Link& LinkTo(int rank) override {
    return rank_ == 0 ? wires_[rank - 1]->server() : wires_[rank_ - 1]->client();
  }
  Memory* memory() override { return memory_.get(); }

 private:
  std::vector<std::unique_ptr<ThreadLink>>& wires_;
  const int rank_;
  const std::unique_ptr<Memory> memory_;
};

// A server and its clients on wires of their own, each on a thread.
class Field {
 public:
  Field(const Case& c, int clients, int period, double patience_s = kSoon)
      : case_(c),
        options(c.options),
        plan{.samples = 230, .batch = 30, .shards = clients, .steps = 24},
        schedule(c.optimizer, plan.steps_per_epoch(), plan.steps, plan.batch),
        counter(plan) {
    for (int i = 0; i < clients; ++i)
      wires.push_back(std::make_unique<ThreadLink>(kSoon, patience_s));
    options.period = period;
    if (options.name == "async-ps") options.push = period;
    if (Setup().choice.in_memory()) box.emplace(MemoryBoxSetup{});
    for (int r = 0; r <= clients; ++r) {
      worlds.push_back(std::make_unique<FieldWorld>(wires, box ? &*box : nullptr, r));
    }
    setup.emplace(Setup());
  }

  StrategySetup Setup() const {
    StrategySetup made{ResolveStrategy(options, {.ranks = int(wires.size()) + 1}), plan,
                       model.layout};
    made.optimizer = &case_.optimizer;
    made.schedule = &schedule;
    return made;
  }

  std::unique_ptr<ParameterServer> NewServer() {
    auto made = MakeServer(*setup, *worlds[0], model.initial);
    std::unique_ptr<ParameterServer> server(dynamic_cast<ParameterServer*>(made.release()));
    server->OnClose([this](const Lease& lease) { counter.Close(lease); });
    return server;
  }

  // Runs client `i` to the end of the run; `each` sees every step before it is computed, false: the
  // client dies there, leaving its link closed.
  void RunClient(int i, std::function<bool(toy::Worker&)> each) {
    const auto device = case_.device();
    const auto strategy = MakeWorker(*setup, *worlds[i + 1]);
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
  std::vector<std::unique_ptr<ThreadLink>> wires;
  std::optional<MemoryBox> box;
  std::vector<std::unique_ptr<FieldWorld>> worlds;
  CountedOnce counter;
  std::optional<const StrategySetup> setup;
  std::vector<float> final_state;
};

class CentreField : public testing::TestWithParam<Case> {};

bool Go(toy::Worker&) { return true; }

struct CountEpochs : ServerKeeper {
  void EpochEnded(const Server& server) override {
    const Server::Progress progress = server.progress();
    EXPECT_EQ(progress.epochs, ++ends);
    EXPECT_EQ(progress.samples, progress.positions - last_positions);
    EXPECT_GT(progress.loss_sum, 0);
    if (open) {  // a push may hold positions of the next epoch, too
      EXPECT_GE(progress.positions, ends * 230);
      EXPECT_LT(progress.positions, (ends + 1) * 230);
    } else {
      EXPECT_EQ(progress.positions, ends * 230);
    }
    last_positions = progress.positions;
  }
  void Look(const Server&) override {}
  bool Stop() override { return false; }
  bool open = false;  // borders of epochs
  int ends = 0;
  int64_t last_positions = 0;
};

// The others hardly go on after a few steps until what the test is about has happened, whoever was
// faster. They do not stop: it may be that the one to whom it is to happen waits for what they
// hold.
void PauseUntil(const std::atomic<bool>& happened, int64_t steps) {
  std::this_thread::sleep_for(milliseconds(1));
  for (int i = 0; i < 1'000 && steps >= 5 && !happened; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST_P(CentreField, EveryPositionCountsOnceAndEveryEpochEnds) {
  for (int period : {1, 3, 10}) {
    Field field(GetParam(), 4, period);
    CountEpochs keeper;
    keeper.open = field.setup->choice.open_epochs();
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
    for (const ClientStats& client : server->clients()) samples += client.samples;
    EXPECT_EQ(samples, 3 * 230);
    server->Gather();
    EXPECT_TRUE(std::equal(field.final_state.begin(), field.final_state.end(),
                           server->centre().begin()));  // the last snapshot holds all
    // How far it gets depends on who came last: clients that the machine left waiting after their
    // first fetch pull the centre back towards where they are.
    EXPECT_LT(field.DistanceToTargets(server->centre()),
              field.DistanceToTargets(field.model.initial));
  }
}

TEST_P(CentreField, AClientThatDiesLeavesItsLeasesToOthers) {
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

TEST_P(CentreField, AShortCutLosesNothing) {
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

TEST_P(CentreField, AWorkerThatWasGivenUpIsRefusedAndBeginsAnew) {
  Field field(GetParam(), 3, 4, /*patience_s=*/0.03);
  std::atomic<bool> given_up = false;
  struct Keeper : ServerKeeper {
    void EpochEnded(const Server&) override {}
    void Look(const Server& server) override { here = server.clients()[1].here; }
    bool Stop() override { return false; }
    std::atomic<bool> here = true;
  } keeper;
  auto server = field.NewServer();
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&, i] {
        field.RunClient(i, [&](toy::Worker& worker) {
          if (i != 1) PauseUntil(given_up, worker.step());
          if (i == 1 && worker.step() == 4) {  // holds leases
            field.wires[1]->Cut(3600);
            while (keeper.here) std::this_thread::sleep_for(milliseconds(1));
            field.wires[1]->Cut(0);  // it is mended
            given_up = true;
          }
          return true;
        });
      });
    }
    server->Run(&keeper);
  }
  field.counter.ExpectOnce(3 * 230);
  EXPECT_GE(server->refused(), given_up ? 1 : 0);  // no: the others were faster
}

TEST_P(CentreField, ARestartedServerGoesOnFromItsSnapshot) {
  Field field(GetParam(), 3, 3);
  // The first server dies some closed leases after it has saved itself.
  struct Crash {};
  struct Keeper : ServerKeeper {
    void EpochEnded(const Server&) override {}
    void Look(const Server& server) override {
      if (saved || server.progress().positions < 100) return;
      server.Gather();
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
  add("elastic_memory", {.name = "easgd", .centre = "memory", .alpha = 0.3f});
  add("gossip", {.name = "pgas"});
  add("neighbours", {.name = "pgas", .merge = "neighbours"});
  add("moves", {.name = "hogwild", .centre = "memory"}, {.lr = 0.02, .momentum = 0});
  add("elastic_wait", {.name = "easgd", .alpha = 0.3f, .staleness = 0, .stale = "wait"});
  add("downpour", {.name = "downpour", .push = 3, .fetch = 2}, {.lr = 0.02, .momentum = 0});
  add("clock", {.name = "ssp", .staleness = 2});
  add("round", {.name = "federated", .outer_momentum = 0.3f});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, CentreField, testing::ValuesIn(Cases()),
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
              worker.before_last_bucket = [&](const Work&) {  // none is pushed before
                if (bound == 7 && worker.step() == 0) all_hold_weights.arrive_and_wait();
              };
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
  const StrategyOptions kinds[] = {{.name = "mpi-ps"},
                                   {.name = "mpi-ps", .merge = "gradient"},
                                   {.name = "mpi-ps", .merge = "average"},
                                   {.name = "hybrid"},
                                   {.name = "hybrid", .merge = "neighbours"},
                                   {.name = "hybrid", .merge = "moves"}};
  for (StrategyOptions options : kinds) {
    SCOPED_TRACE(options.name + " " + options.merge);
    const toy::Model model(200);
    const Plan plan{.samples = 230, .batch = 40, .shards = 5, .steps = 18};
    options.period = 3;
    options.alpha = 0.4f;
    options.groups = 2;  // of two and of three workers
    const OptimizerOptions optimizer{.lr = 0.05, .momentum = 0};
    const Schedule schedule(optimizer, plan.steps_per_epoch(), plan.steps, plan.batch);
    StrategySetup setup{ResolveStrategy(options, {.ranks = 6}), plan, model.layout};
    setup.optimizer = &optimizer;
    setup.schedule = &schedule;
    std::vector<int64_t> samples(6);
    std::vector<std::vector<float>> states(6);
    MemoryBox box(MemoryBoxSetup{});
    RunRanks(6, 60, [&](World& ranks) {
      const auto memory = box.Connect();
      WithMemory world(ranks, *memory);
      if (world.rank() == 0) {
        const auto server = MakeServer(setup, world, model.initial);
        server->Run(nullptr);
        EXPECT_EQ(server->progress().positions, 3 * 230);
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
    EXPECT_EQ(std::accumulate(samples.begin(), samples.end(), int64_t{0}), 3 * 230);
    if (options.merge == "gradient") {  // nobody else moves the replicas
      EXPECT_EQ(states[1], states[2]);
      EXPECT_EQ(states[3], states[5]);
    }
  }
}

}  // namespace
}  // namespace trireme
