// Elastic averaging through the full seam: leases, drains, refusals, restarts, on a toy engine.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "pretend/device.h"
#include "strategy/centre_server.h"
#include "strategy/composed.h"
#include "strategy/inner_alone.h"
#include "strategy/merge_elastic.h"
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

// A server and its clients on wires of their own, each on a thread: what a test may cut and renew.
class Field {
 public:
  Field(const Case& c, int clients, double patience_s = 10)
      : case_(c), plan{.samples = 230, .batch = 30, .shards = 1, .steps = 24}, counter(plan) {
    for (int i = 0; i < clients; ++i) wires.push_back(std::make_unique<Wire>(10, patience_s));
  }

  std::unique_ptr<CentreServer> NewServer() {
    CentreServer::Setup setup{.samples = plan.samples, .positions = 3 * plan.samples, .lease = 10};
    for (auto& wire : wires) setup.clients.push_back(&wire->server());
    setup.merge = [](Queue& queue, Slice pull, Slice centre) { flat::Add(queue, pull, centre); };
    auto server = std::make_unique<CentreServer>(std::move(setup), model.initial);
    server->OnClose([this](const Lease& lease) { counter.Close(lease); });
    return server;
  }

  // Runs client `i` to the end of the run; `each` sees every step before it is computed, false: the
  // client dies there, leaving its link closed.
  void RunClient(int i, int period, std::function<bool(toy::Worker&)> each) {
    const auto device = case_.device();
    Choices choices{.plan = plan,
                    .worker = i,
                    .workers = int(wires.size()),
                    .records = i == 0,
                    .period = period};
    choices.inner = std::make_unique<InnerAlone>(1);
    choices.centre = std::make_unique<Client>(wires[i]->client());
    choices.merge = std::make_unique<MergeElastic>(*choices.centre, 0.3f);
    Composed strategy(std::move(choices));
    toy::Worker worker(model, kOptimizer, plan, *device, strategy);
    struct Death {};
    worker.before_shards = [&](const Work&) {
      if (!each(worker)) throw Death();
    };
    try {
      worker.Start(model.initial, 0, nullptr);
      for (Turn turn; (turn = worker.Step()) != Turn::kEnd;) {
        if (turn == Turn::kEpochEnd) ++epoch_ends;
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
  const Plan plan;
  const toy::Model model{200};
  std::vector<std::unique_ptr<Wire>> wires;
  Counter counter;
  std::atomic<int> epoch_ends = 0;
  std::vector<float> final_state;
};

class Easgd : public testing::TestWithParam<Case> {};

bool Go(toy::Worker&) { return true; }

// The others pause after a few steps until what the test is about has happened, whoever was faster.
void PauseUntil(const std::atomic<bool>& happened, int64_t steps) {
  std::this_thread::sleep_for(milliseconds(1));
  for (int i = 0; i < 10'000 && steps >= 8 && !happened; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST_P(Easgd, EveryPositionCountsOnceAndEveryEpochEndsForEachWorker) {
  for (int period : {1, 3, 10}) {
    Field field(GetParam(), 4);
    auto server = field.NewServer();
    {
      std::vector<std::jthread> clients;
      for (int i = 0; i < 4; ++i) clients.emplace_back([&, i] { field.RunClient(i, period, Go); });
      server->Run();
    }
    field.counter.ExpectOnce(3 * 230);
    EXPECT_EQ(field.epoch_ends, 3 * 4);
    EXPECT_EQ(server->refused(), 0);
    EXPECT_TRUE(server->leases().finished());
    int64_t pushes = 0;
    for (int64_t count : server->staleness()) pushes += count;
    EXPECT_EQ(pushes, server->version());
    EXPECT_GE(pushes, 3 * 23 / period);
    EXPECT_TRUE(std::equal(field.final_state.begin(), field.final_state.end(),
                           server->centre().begin()));  // the last snapshot holds all
    EXPECT_LT(field.DistanceToTargets(server->centre()),
              0.5 * field.DistanceToTargets(field.model.initial));
  }
}

TEST_P(Easgd, AClientThatDiesLeavesItsLeasesToOthers) {
  Field field(GetParam(), 3);
  std::atomic<bool> died = false;
  auto server = field.NewServer();
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&, i] {
        field.RunClient(i, 4, [&](toy::Worker& worker) {
          if (i == 1 && worker.step() == 6) died = true;  // amid a period: three leases are open
          if (i != 1) PauseUntil(died, worker.step());
          return i != 1 || !died;
        });
      });
    }
    server->Run();
  }
  field.counter.ExpectOnce(3 * 230);
  EXPECT_TRUE(server->leases().finished());
}

TEST_P(Easgd, AShortCutLosesNothing) {
  Field field(GetParam(), 3);
  auto server = field.NewServer();
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&, i] {
        int steps = 0;
        field.RunClient(i, 2, [&](toy::Worker&) {
          if (i == 1 && ++steps % 5 == 0) field.wires[1]->Cut(0.02);
          return true;
        });
      });
    }
    server->Run();
  }
  field.counter.ExpectOnce(3 * 230);
  EXPECT_EQ(server->refused(), 0);
}

TEST_P(Easgd, AWorkerThatWasGivenUpIsRefusedAndBeginsAnew) {
  Field field(GetParam(), 3, /*patience_s=*/0.03);
  std::atomic<bool> cut = false;
  auto server = field.NewServer();
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&, i] {
        field.RunClient(i, 4, [&](toy::Worker& worker) {
          if (i != 1) PauseUntil(cut, worker.step());
          if (i == 1 && worker.step() == 6) {  // holds leases
            field.wires[1]->Cut(0.15);
            cut = true;
            std::this_thread::sleep_for(milliseconds(200));
          }
          return true;
        });
      });
    }
    server->Run();
  }
  field.counter.ExpectOnce(3 * 230);
  EXPECT_GE(server->refused(), 1);
}

TEST_P(Easgd, ARestartedServerGoesOnFromItsSnapshot) {
  Field field(GetParam(), 3);
  // The first server dies when worker 0 has saved and the others have gone on for a while.
  struct Crash {};
  toy::Memory saved;
  std::atomic<bool> is_saved = false;
  std::atomic<int> since = 0;
  auto server = field.NewServer();
  server->OnClose([&](const Lease& lease) {
    field.counter.Close(lease);
    if (is_saved && ++since == 5) throw Crash();
  });
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&, i] {
        field.RunClient(i, 3, [&](toy::Worker& worker) {
          if (i != 0) PauseUntil(is_saved, worker.step());
          if (i == 0 && worker.step() == 8) {
            worker.Save(saved);
            is_saved = true;
          }
          return true;
        });
      });
    }
    EXPECT_THROW(server->Run(), Crash);
    server = field.NewServer();
    server->Load(saved);
    const int64_t closed = server->leases().closed_positions();
    EXPECT_GT(closed, 0);
    EXPECT_LT(closed, int64_t(field.counter.counted().size()));  // all since the snapshot is lost
    field.counter.Clear();
    for (auto& wire : field.wires) wire->Renew();
    server->Run();
    // Since the restart exactly those positions counted that the snapshot does not hold.
    const auto again = field.counter.counted();
    EXPECT_EQ(int64_t(again.size()), 3 * 230 - closed);
    for (const auto& [position, times] : again) EXPECT_EQ(times, 1) << position;
  }
  EXPECT_TRUE(server->leases().finished());
  EXPECT_EQ(server->leases().closed_positions(), 3 * 230);
}

std::vector<Case> Devices() {
  return {{"host", toy::Host}, {"pretend", [] { return std::make_unique<PretendDevice>(); }}};
}
INSTANTIATE_TEST_SUITE_P(Devices, Easgd, testing::ValuesIn(Devices()),
                         testing::PrintToStringParamName());

// ---- through the preset: ranks of a threads world

struct Result {
  std::vector<float> state;
  int64_t closed = 0;
  int epoch_ends = 0;
  std::vector<int64_t> steps;  // of worker 0
};

Result Train(const Plan& plan, int ranks, const toy::Memory* resume, toy::Memory* save,
             int64_t stop_after = -1) {
  const toy::Model model(200);
  const StrategyOptions options{.name = "easgd", .period = 3};
  const StrategySetup setup{options, plan, model.layout, false};
  Result result;
  std::atomic<int> epoch_ends = 0;
  RunRanks(ranks, 20, [&](World& world) {
    if (world.rank() == 0) {
      const auto server = MakeServer(setup, world, resume ? resume->state : model.initial);
      if (resume) server->Load(*resume);
      server->Run();
      result.closed = dynamic_cast<CentreServer&>(*server).leases().closed_positions();
      return;
    }
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    EXPECT_FALSE(strategy->InStep());
    EXPECT_EQ(strategy->Records(), world.rank() == 1);
    EXPECT_EQ(strategy->Summands(), 1);
    toy::Worker worker(model, kOptimizer, plan, *device, *strategy);
    worker.Start(model.initial, 0, resume);
    for (Turn turn; (turn = worker.Step()) != Turn::kEnd;) {
      epoch_ends += turn == Turn::kEpochEnd;
      if (turn != Turn::kStep) continue;
      if (worker.step() == stop_after) strategy->Stop();
      if (world.rank() == 1) result.steps.push_back(worker.replica().work.step);
    }
    worker.Finish();
    if (save) worker.Save(*save);
    if (strategy->Records()) result.state = worker.Snapshot();
    EXPECT_GT(strategy->traffic().bytes_sent, 0u);
    EXPECT_GT(strategy->traffic().bytes_received, 0u);
  });
  result.epoch_ends = epoch_ends;
  return result;
}

TEST(EasgdPreset, UsesThePositionsOfAsManySteps) {
  // 4 steps an epoch, the last of 10 samples; 6 steps: one epoch and two steps of the next.
  const Plan plan{.samples = 100, .batch = 30, .shards = 1, .steps = 6};
  const Result result = Train(plan, 4, nullptr, nullptr);
  EXPECT_EQ(result.closed, 160);
  EXPECT_EQ(result.epoch_ends, 3);  // the second one is cut short
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
  const Result half = Train(plan, 4, nullptr, &saved, /*stop_after=*/20);
  EXPECT_GE(half.closed, 200);  // 20 local steps of 10 by whoever was first
  EXPECT_LT(half.closed, 1200);
  EXPECT_EQ(saved.state, half.state);
  const Result whole = Train(plan, 3, &saved, nullptr);  // another number of workers
  EXPECT_EQ(whole.closed, 1200);
  EXPECT_EQ(half.epoch_ends / 3 + whole.epoch_ends / 2, 4);
}

TEST(EasgdPreset, AResumedRunThatWasDoneHasNothingToDo) {
  const Plan plan{.samples = 60, .batch = 30, .shards = 1, .steps = 4};
  toy::Memory saved;
  Train(plan, 3, nullptr, &saved);
  const Result again = Train(plan, 3, &saved, nullptr);
  EXPECT_EQ(again.closed, 120);
  EXPECT_TRUE(again.steps.empty());
  EXPECT_EQ(again.epoch_ends, 0);
  EXPECT_EQ(again.state, saved.state);
  const Plan longer{.samples = 60, .batch = 30, .shards = 1, .steps = 6};
  const Result more = Train(longer, 3, &saved, nullptr);
  EXPECT_EQ(more.closed, 180);
  EXPECT_EQ(more.epoch_ends, 2);
}

TEST(EasgdPreset, AWorkerThatThrowsEndsTheJobWithItsError) {
  const toy::Model model(200);
  const Plan plan{.samples = 1000, .batch = 30, .shards = 1, .steps = 1000};
  const StrategyOptions options{.name = "easgd"};
  const StrategySetup setup{options, plan, model.layout, false};
  const auto start = std::chrono::steady_clock::now();
  try {
    RunRanks(4, 60, [&](World& world) {
      if (world.rank() == 0) return MakeServer(setup, world, model.initial)->Run();
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

TEST(CentreServerTest, RefusesWhatDoesNotBelong) {
  Wire wire(10, 10);
  CentreServer::Setup setup{.clients = {&wire.server()}, .samples = 100, .positions = 100};
  setup.lease = 10;
  setup.merge = [](Queue& queue, Slice pull, Slice centre) { flat::Add(queue, pull, centre); };
  const std::vector<float> start(32, 1.0f);
  CentreServer server(std::move(setup), start);
  std::jthread thread([&] { server.Run(); });

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
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, lease() + 1}, .body = good}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, lease()}, .body = nan}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, lease()}, .body = std::vector<float>(31)}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {1, lease()}, .body = good}));  // of the future
  EXPECT_TRUE(refused({.kind = kPush, .ints = {-1, lease()}, .body = good}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0}, .body = good}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {}, .body = good}));
  const int64_t id = lease();
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, id, id}, .body = good}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, id}, .body = good}));  // void since the refusal
  EXPECT_TRUE(refused({.kind = 77}));
  EXPECT_TRUE(refused({.kind = -1}));
  EXPECT_FALSE(refused({.kind = kPush, .ints = {0, lease()}, .body = good}));
  link.Send({.kind = kBye});
  thread.join();
  EXPECT_EQ(server.version(), 1);
  EXPECT_EQ(server.refused(), 11);
  EXPECT_EQ(server.leases().closed_positions(), 10);
  EXPECT_EQ(server.leases().open(), 0);
  for (float value : server.centre()) EXPECT_EQ(value, 1.5f);
}

TEST(CentreServerTest, EndsARunWhoseWorkersOnlyDiverge) {
  Wire wire(10, 10);
  CentreServer::Setup setup{.clients = {&wire.server()}, .samples = 100, .positions = 100};
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
      link.Send({.kind = kPush, .ints = {0, message.ints.at(1)}, .body = inf});
      message = {};
    }
  });
  try {
    server.Run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("optimizer.lr"), std::string::npos) << error.what();
  }
}

TEST(CentreServerTest, WithoutClientsItGivesUpAndSaysSo) {
  Wire wire(0.1, 10);
  CentreServer::Setup setup{.clients = {&wire.server()}, .samples = 100, .positions = 100};
  const std::vector<float> start(32, 1.0f);
  CentreServer server(std::move(setup), start);
  wire.client().Close();
  EXPECT_THROW(server.Run(), PeerLost);
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
