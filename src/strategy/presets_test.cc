// The strategies that advance in step, through the full seam, on a toy engine.
#include "strategy/presets.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "base/error.h"
#include "pretend/device.h"
#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "transport/collective/all_reduce.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

struct Case {
  std::string name;
  toy::MakeDevice device;
  bool shared;  // summands are added where they lie, else by messages
  std::string strategy = "allreduce", route = "chain", overlap = "reduce";
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

struct Config {
  int ranks = 1;  // that train
  bool deterministic = false;
  Plan plan{.samples = 100, .batch = 24, .shards = 12, .steps = 13};
  size_t weights = 3000, bucket = 1 << 10;
  OptimizerOptions optimizer{.lr = 0.2, .momentum = 0.9, .weight_decay = 0.01, .clip = 50};
  std::string merge = "gradient", algorithm = "ring", wire = "f32";
  toy::Memory* save = nullptr;
  int64_t save_at = -1;
  const toy::Memory* resume = nullptr;
  std::vector<double> speeds;  // not empty: shards go by them
  std::function<void(int rank, const Work&)> after_step;
  std::function<void(int rank, const Work&)> before_last_bucket;
  std::function<void(const Work&, const Shard&, std::span<float> summand)> after_backward;
};

// The state of every rank after the run.
std::vector<std::vector<float>> Train(const Case& c, const Config& run) {
  const toy::Model model(run.weights, run.bucket);
  StrategyOptions options{.name = c.strategy,
                          .merge = run.merge,
                          .wire = run.wire,
                          .route = c.route,
                          .overlap = c.overlap};
  options.algorithm = c.shared ? "shared" : run.deterministic ? "chain" : run.algorithm;
  options.balance = run.speeds.empty() ? "equal" : "rate";
  const InnerKind& inner = FindInner(FindPreset(c.strategy).inner);
  const int ranks = run.ranks + inner.servers;
  const auto common = inner.common ? inner.common(ranks, 3600) : nullptr;
  const StrategySetup setup{
      ResolveStrategy(options, {.ranks = ranks, .deterministic = run.deterministic}), run.plan,
      model.layout, common.get()};
  std::vector<std::vector<float>> states(ranks);
  RunRanks(ranks, /*timeout_s=*/3600, [&](World& world) {  // longer than a test may take
    const auto device = c.device();
    const auto strategy = MakeWorker(setup, world);
    EXPECT_TRUE(strategy->InStep());
    EXPECT_EQ(strategy->Records(), world.rank() == 0);
    toy::Worker worker(model, run.optimizer, run.plan, *device, *strategy);
    if (run.before_last_bucket) {
      worker.before_last_bucket = [&](const Work& work) {
        run.before_last_bucket(world.rank(), work);
      };
    }
    worker.after_backward = run.after_backward;
    if (!run.speeds.empty()) {
      worker.epoch_seconds = [&](int64_t samples) {
        return double(samples) / run.speeds[size_t(std::max(0, world.rank() - inner.servers))];
      };
    }
    worker.Start(run.resume ? run.resume->state : model.initial, run.resume ? run.resume->step : 0,
                 run.resume);
    while (worker.Step() == Turn::kStep) {
      if (run.after_step) run.after_step(world.rank() - inner.servers, worker.replica().work);
      if (run.save && worker.step() == run.save_at) worker.Save(*run.save);
    }
    worker.Finish();
    states[world.rank()] = worker.Snapshot();
    if (world.size() > 1 && !common) {
      const Traffic traffic = strategy->traffic();  // the first rank may have nothing to send
      EXPECT_GT(traffic.bytes_sent + traffic.bytes_received, 0u);
    }
  });
  return states;
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - b[i]));
  return most;
}

class InStep : public testing::TestWithParam<Case> {};
class ByMessages : public InStep {};
class WithServer : public InStep {};

// Without momentum, decay and clipping the toy has a formula: w -= lr * mean(w - target).
std::vector<double> PlayByHand(const Config& run) {
  const toy::Model model(run.weights);
  std::vector<double> played(model.initial.begin(), model.initial.end());
  for (const Range& range : model.layout.parameters) {
    for (size_t j = range.begin; j < range.end(); ++j) {
      for (int64_t step = 0; step < run.plan.steps; ++step) {
        const int64_t epoch = step / 5, begin = step % 5 * 24, count = std::min(24L, 100 - begin);
        double mean = 0;
        for (int64_t p = begin; p < begin + count; ++p) mean += toy::Target(epoch, p, j);
        played[j] -= run.optimizer.lr * (played[j] - mean / double(count));
      }
    }
  }
  return played;
}

// Gradients, and what is sent to a server instead: how far plain SGD has moved each worker.
TEST_P(InStep, WorkersFollowTheFormula) {
  const bool has_server = GetParam().strategy == "sync-ps";
  const Config plain{.optimizer = {.lr = 0.2, .momentum = 0}};
  const std::vector<double> played = PlayByHand(plain);
  const size_t statistic = toy::Model(plain.weights).layout.weights;
  for (const char* merge : {"gradient", "difference"}) {
    const bool differences = std::string(merge) == "difference";
    if (differences && !has_server) continue;
    for (const bool deterministic : {false, true}) {
      if (differences && deterministic) continue;  // equal to rounding only
      for (const int ranks : {1, 3}) {
        Config run = plain;
        run.ranks = ranks;
        run.deterministic = deterministic;
        run.merge = merge;
        const auto trained = Train(GetParam(), run);
        for (size_t j = 0; j < statistic; ++j) {
          ASSERT_NEAR(trained[0][j], played[j], 1e-4) << merge << " " << ranks << " " << j;
        }
        EXPECT_GT(trained[0][statistic], 0.1f);  // it moved, too
      }
    }
  }
}

TEST_P(InStep, AnyNumberOfWorkersGivesTheSameSumToRounding) {
  const auto one = Train(GetParam(), {.ranks = 1});
  for (int ranks : {2, 3, 4}) {
    const auto many = Train(GetParam(), {.ranks = ranks});
    for (const auto& state : many) EXPECT_EQ(state, many[0]);
    EXPECT_LT(Distance(many[0], one[0]), 2e-5) << ranks;
    EXPECT_GT(Distance(many[0], toy::Model(3000).initial), 0.1);
  }
}

TEST_P(InStep, DeterministicGivesEqualBitsForAnyNumberOfWorkers) {
  const auto one = Train(GetParam(), {.ranks = 1, .deterministic = true});
  for (int ranks : {2, 3, 4}) {
    const auto many = Train(GetParam(), {.ranks = ranks, .deterministic = true});
    for (const auto& state : many) EXPECT_EQ(state, one[0]) << ranks;
  }
}

TEST_P(InStep, ManySegmentsAndUnevenEndsKeepTheirBits) {
  // 150,000 floats in buckets of several segments; 25 samples: the last step has one, eleven shards
  // are empty.
  const Plan plan{.samples = 25, .batch = 24, .shards = 12, .steps = 4};
  const Config run{.deterministic = true, .plan = plan, .weights = 150'000, .bucket = 1 << 17};
  const auto one = Train(GetParam(), run);
  Config three = run;
  three.ranks = 3;
  EXPECT_EQ(Train(GetParam(), three)[2], one[0]);
  three.deterministic = false;
  EXPECT_LT(Distance(Train(GetParam(), three)[1], one[0]), 2e-5);
}

TEST_P(InStep, MoreWorkersThanShards) {
  for (bool deterministic : {false, true}) {
    const Plan plan{.samples = 100, .batch = 24, .shards = 2, .steps = 9};
    Config run{.deterministic = deterministic, .plan = plan};
    const auto one = Train(GetParam(), run);
    run.ranks = 5;
    const auto five = Train(GetParam(), run);
    for (const auto& state : five) EXPECT_EQ(state, five[0]);
    if (deterministic) {
      EXPECT_EQ(five[0], one[0]);
    } else {
      EXPECT_LT(Distance(five[0], one[0]), 2e-5);
    }
  }
}

TEST_P(InStep, ResumesToTheSameBitsWithAnotherNumberOfWorkers) {
  const auto whole = Train(GetParam(), {.ranks = 4, .deterministic = true});
  toy::Memory saved;
  Train(GetParam(), {.ranks = 4, .deterministic = true, .save = &saved, .save_at = 6});
  EXPECT_EQ(saved.step, 6);
  const auto resumed = Train(GetParam(), {.ranks = 3, .deterministic = true, .resume = &saved});
  EXPECT_EQ(resumed[0], whole[0]);
}

// One bad value of one shard: no rank updates in that step, whether its gradients are looked at as
// they are added up or (to clip) behind it; and a loss is no gradient.
TEST_P(InStep, AStepThatIsNotFiniteIsSkippedByAll) {
  const Layout layout = toy::Model(3000).layout;
  const size_t last = layout.parameters.back().end() - 1;
  Config run{.deterministic = true, .plan = {.samples = 100, .batch = 24, .shards = 3, .steps = 4}};
  const auto check = [&](double clip, std::initializer_list<size_t> places) {
    run.ranks = 1;
    run.optimizer.clip = clip;
    run.after_backward = nullptr;
    const auto clean = Train(GetParam(), run);
    for (size_t at : places) {
      SCOPED_TRACE(fmt::format("clip {}, value {} is not finite", clip, at));
      run.after_backward = [at](const Work& work, const Shard& shard, std::span<float> summand) {
        if (work.step != 2 || shard.index != 1) return;
        summand[at] = std::numeric_limits<float>::infinity();
      };
      run.ranks = 1;
      const auto one = Train(GetParam(), run);
      EXPECT_EQ(one[0] == clean[0], at == layout.loss());
      for (float value : one[0]) ASSERT_TRUE(std::isfinite(value));
      run.ranks = 3;
      for (const auto& state : Train(GetParam(), run)) EXPECT_EQ(state, one[0]);
    }
  };
  check(0, {0, last, layout.weights, layout.loss()});
  check(50, {last});
}

TEST_P(InStep, ARankThatThrowsInTheMiddleEndsAllWithItsOwnError) {
  for (bool deterministic : {false, true}) {
    try {
      Config run{.ranks = 4, .deterministic = deterministic};
      run.before_last_bucket = [](int rank, const Work& work) {
        if (rank == 1 && work.step == 5) throw Error("disk full");
      };
      Train(GetParam(), run);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("disk full (rank 1 of "), 0u) << error.what();
    }
  }
}

TEST_P(ByMessages, EveryAlgorithmAndWireSumsTheSame) {
  const auto one = Train(GetParam(), {.ranks = 1});
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    if (std::string(algorithm.name) == "native") continue;  // threads have none
    for (const char* wire : {"f32", "bf16"}) {
      const auto many = Train(GetParam(), {.ranks = 3, .algorithm = algorithm.name, .wire = wire});
      for (const auto& state : many) EXPECT_EQ(state, many[0]);
      const double near = wire[0] == 'f' ? 2e-5 : 0.05;
      EXPECT_LT(Distance(many[0], one[0]), near) << algorithm.name << " " << wire;
    }
  }
}

// Shards go where they are done earliest, and the bits stay: also of a run that is resumed within
// an epoch.
TEST_P(InStep, ShardsByRateKeepTheirBits) {
  const auto one = Train(GetParam(), {.ranks = 1, .deterministic = true});
  Config run{.ranks = 3, .deterministic = true, .speeds = {3, 1, 2}};
  std::mutex mutex;
  std::map<std::pair<int64_t, int>, size_t> shards;  // of an epoch and worker
  run.after_step = [&](int worker, const Work& work) {
    const std::lock_guard lock(mutex);
    if (worker >= 0) shards[{work.epoch, worker}] = work.shards.size();
  };
  for (const auto& state : Train(GetParam(), run)) EXPECT_EQ(state, one[0]);
  for (const auto& [who, count] : shards) {
    const size_t equal = 4, by_rate[] = {6, 2, 4};
    EXPECT_EQ(count, who.first == 0 ? equal : by_rate[who.second]) << who.first << who.second;
  }
  EXPECT_EQ(shards.size(), 9u);

  toy::Memory saved;
  run.save = &saved, run.save_at = 8;
  Train(GetParam(), run);
  run.save = nullptr, run.resume = &saved;
  shards.clear();
  for (const auto& state : Train(GetParam(), run)) EXPECT_EQ(state, one[0]);
  EXPECT_EQ((shards[{1, 0}]), 6u);
  run.ranks = 2;
  for (const auto& state : Train(GetParam(), run)) EXPECT_EQ(state, one[0]);

  run.ranks = 3, run.deterministic = false, run.resume = nullptr;
  const auto other = Train(GetParam(), run);
  for (const auto& state : other) EXPECT_EQ(state, other[0]);
  EXPECT_LT(Distance(other[0], one[0]), 2e-5);
}

// With plain SGD moves of weights add up to the move that the sum of gradients makes.
TEST_P(WithServer, DifferencesAgreeWithGradientsToRounding) {
  Config run{.ranks = 3, .optimizer = {.lr = 0.2, .momentum = 0}};
  const auto gradients = Train(GetParam(), run);
  run.merge = "difference";
  const auto differences = Train(GetParam(), run);
  for (const auto& state : differences) EXPECT_EQ(state, differences[0]);
  EXPECT_LT(Distance(differences[0], gradients[0]), 2e-5);
  EXPECT_GT(Distance(differences[0], toy::Model(3000).initial), 0.1);
}

// Who passes a summand on does not change the order in which all are added.
TEST(ThroughServer, AStarAndAChainHaveEqualBits) {
  for (const bool deterministic : {false, true}) {
    for (const char* merge : {"gradient", "difference"}) {
      if (deterministic && merge[0] == 'd') continue;  // refused
      for (const int shards : {12, 2}) {
        Config run{.ranks = 3, .deterministic = deterministic};
        run.plan.shards = shards;  // 2: a worker has none
        run.optimizer = {.lr = 0.2, .momentum = 0};
        run.merge = merge;
        const auto chain = Train({"chain", toy::Host, false, "sync-ps", "chain"}, run);
        EXPECT_EQ(Train({"star", toy::Host, false, "sync-ps", "star"}, run), chain)
            << merge << ", deterministic " << deterministic << ", " << shards << " shards";
      }
    }
  }
}

// Also more than are added in one go, of which any may lie where the sum goes.
TEST(Broker, AddsInTheOrderOfShardsWhoeverHasThem) {
  Config run{.deterministic = true};
  run.plan.shards = 24;
  const auto one = Train({"alone", toy::Host, false}, run);
  for (const int ranks : {1, 2, 3, 5}) {
    run.ranks = ranks;
    for (const auto& state : Train({"broker", toy::Host, false, "bsp"}, run)) {
      EXPECT_EQ(state, one[0]) << ranks;
    }
  }
}

// What travels while workers compute does not change what is added up.
TEST(ThroughServer, EveryOverlapHasEqualBits) {
  const auto pretend = [] { return std::make_unique<PretendDevice>(); };
  for (const bool deterministic : {false, true}) {
    for (const char* merge : {"gradient", "difference"}) {
      if (deterministic && merge[0] == 'd') continue;  // refused
      for (const int shards : {12, 2}) {
        Config run{.ranks = 3, .deterministic = deterministic};
        run.plan.shards = shards;  // 2: a worker has none
        run.plan.steps = 2;
        run.weights = 100'000, run.bucket = 70'000;  // of two segments
        run.optimizer = {.lr = 0.2, .momentum = 0};
        run.merge = merge;
        const auto usual = Train({"reduce", toy::Host, false, "sync-ps"}, run);
        for (const std::string overlap : {"none", "broadcast", "both"}) {
          for (const std::string route : {"chain", "star"}) {
            SCOPED_TRACE(fmt::format("{}, {}, deterministic {}, {} shards, {}", merge, overlap,
                                     deterministic, shards, route));
            EXPECT_EQ(Train({"host", toy::Host, false, "sync-ps", route, overlap}, run), usual);
            EXPECT_EQ(Train({"pretend", pretend, false, "sync-ps", route, overlap}, run), usual);
          }
        }
      }
    }
  }
}

std::vector<Case> Devices() {
  const auto pretend = [] { return std::make_unique<PretendDevice>(); };
  return {{"host_shared", toy::Host, true},
          {"host_messages", toy::Host, false},
          {"pretend_shared", pretend, true},
          {"pretend_messages", pretend, false},
          {"host_server", toy::Host, false, "sync-ps"},
          {"pretend_server", pretend, false, "sync-ps"},
          {"host_star", toy::Host, false, "sync-ps", "star"},
          {"pretend_star", pretend, false, "sync-ps", "star"},
          {"host_overlap", toy::Host, false, "sync-ps", "chain", "both"},
          {"pretend_overlap", pretend, false, "sync-ps", "chain", "both"},
          {"pretend_star_overlap", pretend, false, "sync-ps", "star", "broadcast"},
          {"host_broker", toy::Host, false, "bsp"}};
}
std::vector<Case> DevicesWhere(bool (*fits)(const Case&)) {
  std::vector<Case> cases = Devices();
  std::erase_if(cases, [&](const Case& c) { return !fits(c); });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Devices, InStep, testing::ValuesIn(Devices()),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Devices, ByMessages, testing::ValuesIn(DevicesWhere([](const Case& c) {
                           return c.strategy == "allreduce" && !c.shared;
                         })),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Devices, WithServer, testing::ValuesIn(DevicesWhere([](const Case& c) {
                           return c.strategy == "sync-ps";
                         })),
                         testing::PrintToStringParamName());

// Some stage what travels, others do not; a server may have the processor alone. All must send it
// in equal segments.
TEST(Devices, OfDifferentKindsGiveTheBitsOfOne) {
  const Plan plan{.samples = 25, .batch = 24, .shards = 12, .steps = 2};
  const Config run{
      .ranks = 3, .deterministic = true, .plan = plan, .weights = 150'000, .bucket = 1 << 17};
  Case host{.name = "host", .device = toy::Host, .shared = false};
  for (const auto& [strategy, route, overlap] :
       {std::array{"allreduce", "chain", "reduce"}, std::array{"sync-ps", "chain", "both"},
        std::array{"sync-ps", "star", "reduce"}}) {
    host.strategy = strategy;
    host.route = route;
    host.overlap = overlap;
    Case mixed = host;
    std::atomic<int> made = 0;
    mixed.device = [&made]() -> std::unique_ptr<Device> {
      if (made++ % 2) return std::make_unique<PretendDevice>();
      return toy::Host();
    };
    EXPECT_EQ(Train(mixed, run)[0], Train(host, run)[0]) << strategy << " " << route;
  }
}

TEST(Presets, AreListedWithHelp) {
  for (const StrategyPreset& preset : StrategyPresets()) {
    EXPECT_EQ(&FindPreset(preset.name), &preset);
    EXPECT_GT(std::string(preset.help).size(), 20u);
    EXPECT_NO_THROW(ResolveStrategy({.name = preset.name}, {.ranks = 5}));
  }
  EXPECT_THROW(FindPreset("allreduse"), UsageError);
}

TEST(Presets, ThreeNeedMemoryThatTheHostReads) {
  for (const StrategyPreset& preset : StrategyPresets()) {
    const std::string name(preset.name);
    const bool refused = name == "bsp" || name == "hogwild" || name == "dogwild";
    try {
      ResolveStrategy({.name = name}, {.ranks = 5, .host_memory = false});
      EXPECT_FALSE(refused) << name;
    } catch (const UsageError& error) {
      EXPECT_TRUE(refused) << name;
      EXPECT_NE(std::string(error.what()).find("--device cpu"), std::string::npos);
    }
  }
}

TEST(Presets, RefuseWhatMakesNoSense) {
  EXPECT_EQ(ResolveStrategy({.name = "allreduce"}, {.ranks = 4, .deterministic = true}).workers(),
            4);
  EXPECT_EQ(ResolveStrategy({.name = "easgd"}, {.ranks = 4}).workers(), 3);
  EXPECT_THROW(ResolveStrategy({.name = "easgd"}, {.ranks = 4, .deterministic = true}), UsageError);
  EXPECT_THROW(ResolveStrategy({.name = "easgd"}, {.ranks = 1}), UsageError);
  const StrategyOptions wait{.name = "downpour", .push = 3, .staleness = 2, .stale = "wait"};
  EXPECT_EQ(ResolveStrategy(wait, {.ranks = 4}).workers(),
            3);  // weights are fetched once for each push
  StrategyOptions other = wait;
  other.fetch = 2;
  EXPECT_THROW(ResolveStrategy(other, {.ranks = 4}), UsageError);
  other = wait;
  other.staleness = -1;
  EXPECT_THROW(ResolveStrategy(other, {.ranks = 4}), UsageError);
  other = wait;
  other.merge = "halve";
  EXPECT_THROW(ResolveStrategy(other, {.ranks = 4}), UsageError);
  EXPECT_TRUE(ResolveStrategy({.name = "sync-ps", .route = "star"}, {.ranks = 3}).star);
  EXPECT_THROW(ResolveStrategy({.name = "allreduce", .route = "star"}, {.ranks = 3}), UsageError);
  const Overlap usual = ResolveStrategy({.name = "sync-ps"}, {.ranks = 3}).overlap;
  EXPECT_TRUE(usual.reduce && !usual.broadcast);
  EXPECT_THROW(ResolveStrategy({.name = "allreduce", .overlap = "both"}, {.ranks = 3}), UsageError);
  EXPECT_THROW(ResolveStrategy({.name = "allreduce", .algorithm = "ring"},
                               {.ranks = 2, .deterministic = true}),
               UsageError);
  EXPECT_THROW(
      ResolveStrategy({.name = "allreduce", .wire = "bf16"}, {.ranks = 2, .deterministic = true}),
      UsageError);
}

}  // namespace
}  // namespace trireme
