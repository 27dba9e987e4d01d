// A leader and its workers against one rank that does it all.
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <mutex>
#include <set>

#include "base/error.h"
#include "flat/cpu/host.h"
#include "optimizer/lbfgs.h"
#include "strategy/batch/alone.h"
#include "strategy/batch/batch_worker.h"
#include "strategy/batch/leader.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr int kPortions = 40, kSamples = 3;  // samples of a portion
constexpr int kVectors = 5 + 2 * 6;
constexpr double kTimeout = 120;

// Weights with gaps, of which some decay, and two statistics.
Layout MakeLayout() {
  Layout layout;
  layout.parameters = {{0, 60}, {64, 70}, {144, 16}};
  layout.decays = {true, false, true};
  layout.weights = 160;
  layout.statistics = {{160, 2}};
  layout.state = 162;
  layout.summand = 165;
  return layout;
}

// Each portion pulls the weights towards its own goal, with its own strength.
class Toy : public PortionGradient {
 public:
  explicit Toy(const Layout& layout)
      : layout_(layout), queue_(device_.NewQueue()), state_(device_, layout.state) {}

  Device& device() const override { return device_; }
  Queue& queue() override { return *queue_; }
  Slice state() override { return state_; }
  bool HasRoom() const override { return wanted_ < 0; }
  void Want(int portion) override { wanted_ = portion; }
  PortionSums Run(Slice summand, bool accumulate) override {
    const int portion = std::exchange(wanted_, -1);
    if (before) before(portion);
    const auto out = summand.host();
    if (!accumulate) std::fill(out.begin(), out.end(), 0.0f);
    double loss = 0;
    for (const Range& range : layout_.parameters) {
      for (size_t i = range.begin; i < range.end(); ++i) {
        const double c = 0.1 + double((i * 7 + size_t(portion) * 13) % 50);
        const double off = state_.slice().data[i] - std::sin(double(i + size_t(portion)));
        loss += 0.5 * c * off * off / kPortions;
        out[i] += float(c * off / kPortions);
      }
    }
    out[160] += float(portion) / kPortions;
    out[161] += 1.0f / kPortions;
    return {.samples = kSamples, .loss = loss, .correct = 1};
  }

  std::function<void(int portion)> before;

 private:
  mutable HostDevice device_;
  const Layout& layout_;
  std::unique_ptr<Queue> queue_;
  Buffer state_;
  int wanted_ = -1;
};

struct Result {
  std::vector<double> values;
  std::vector<float> weights, statistics;
  std::vector<ClientStats> workers;
  double correct = 0;
};

Result Minimise(BatchObjective& f, const Layout& layout, int iterations) {
  Result result;
  f.Put(Lbfgs::kPoint, std::vector<float>(layout.weights, 2.0f));
  Lbfgs lbfgs({.history = 6, .line = {.noise = 1e-7}}, f);
  lbfgs.Begin();
  result.values.push_back(lbfgs.value());
  for (int i = 0; i < iterations; ++i) {
    lbfgs.Iterate();
    result.values.push_back(lbfgs.value());
  }
  result.weights.resize(layout.weights);
  f.Get(Lbfgs::kPoint, result.weights);
  result.statistics = f.seen().statistics;
  result.correct = f.seen().correct;
  result.workers = f.worker_stats();
  return result;
}

Result Alone(int iterations, double decay) {
  const Layout layout = MakeLayout();
  Toy toy(layout);
  BatchAlone alone(toy, layout, kPortions, kVectors, decay);
  return Minimise(alone, layout, iterations);
}

using Before = std::function<void(int worker, int portion)>;

Result Together(int workers, int iterations, double decay, bool backups = true,
                const Before& before = {}) {
  const Layout layout = MakeLayout();
  Result result;
  RunRanks(workers + 1, kTimeout, [&](World& world) {
    if (world.rank() == 0) {
      BatchLeader leader(world, layout, kPortions, backups);
      result = Minimise(leader, layout, iterations);
      leader.End(0);
      return;
    }
    Toy toy(layout);
    const int worker = world.rank() - 1;
    if (before) toy.before = [&, worker](int portion) { before(worker, portion); };
    BatchWorker own({.world = world,
                     .portions = toy,
                     .layout = layout,
                     .vectors = kVectors,
                     .decay = decay,
                     .signal = [] { return 0; },
                     .meet = [](int64_t) {}});
    own.Serve();
  });
  return result;
}

TEST(BatchTest, AnyNumberOfWorkersFollowsTheSamePath) {
  for (double decay : {0.0, 0.5}) {
    const Result alone = Alone(10, decay);
    EXPECT_LT(alone.values.back(), 0.9 * alone.values.front());
    for (int workers : {1, 2, 4}) {
      const Result together = Together(workers, 10, decay);
      for (size_t i = 0; i < alone.values.size(); ++i) {
        ASSERT_NEAR(together.values[i], alone.values[i], 1e-4 * alone.values[i])
            << workers << " workers, iteration " << i;
      }
      for (size_t i = 0; i < alone.weights.size(); ++i) {
        ASSERT_NEAR(together.weights[i], alone.weights[i], 1e-3);
      }
      EXPECT_NEAR(together.statistics[0], alone.statistics[0], 1e-5);
      EXPECT_NEAR(together.statistics[1], 1, 1e-5);
      EXPECT_EQ(together.correct, kPortions) << "every portion counts once";
    }
  }
}

TEST(BatchTest, DecayIsAPenaltyOnTheWeightsThatDecay) {
  const Result without = Alone(30, 0), with = Alone(30, 5);
  double free = 0, decaying = 0, change = 0;
  for (size_t i = 0; i < 60; ++i) {
    free += std::fabs(without.weights[i]);
    decaying += std::fabs(with.weights[i]);
  }
  for (size_t i = 64; i < 134; ++i) change += std::fabs(without.weights[i] - with.weights[i]);
  EXPECT_LT(decaying, 0.95 * free);
  EXPECT_LT(change, 1e-3);
}

// Holds worker 0 in its first portion until all the others are counted.
class Straggler {
 public:
  void Before(int worker, int) {
    std::unique_lock lock(mutex_);
    if (worker == 0 && held_++ == 0) {
      changed_.wait(lock, [&] { return released_; });
    }
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int held_ = 0;
  bool released_ = false;
};

// The gradient is complete, and so are sums of vectors, while worker 0 is still in its portion.
TEST(BatchTest, NobodyWaitsForAPortionThatAnotherHasAnswered) {
  const Layout layout = MakeLayout();
  Straggler straggler;
  RunRanks(4, kTimeout, [&](World& world) {
    if (world.rank() == 0) {
      BatchLeader leader(world, layout, kPortions, /*backups=*/true);
      leader.Put(Lbfgs::kPoint, std::vector<float>(layout.weights, 0.0f));
      const double value = leader.Evaluate(Lbfgs::kPoint, Lbfgs::kGradient);
      const double norm = leader.Dot(Lbfgs::kGradient, Lbfgs::kGradient);
      EXPECT_EQ(leader.seen().correct, kPortions);
      EXPECT_LE(leader.given_twice(), 3 * kPortions);
      straggler.Release();
      EXPECT_NEAR(leader.Evaluate(Lbfgs::kPoint, Lbfgs::kGradient), value, 1e-6 * value);
      EXPECT_NEAR(leader.Dot(Lbfgs::kGradient, Lbfgs::kGradient), norm, 1e-5 * norm);
      EXPECT_EQ(leader.seen().correct, kPortions);
      leader.End(15);
      return;
    }
    Toy toy(layout);
    const int worker = world.rank() - 1;
    toy.before = [&, worker](int portion) { straggler.Before(worker, portion); };
    BatchWorker own({.world = world,
                     .portions = toy,
                     .layout = layout,
                     .vectors = kVectors,
                     .decay = 0,
                     .signal = [] { return 0; },
                     .meet = [](int64_t) {}});
    EXPECT_EQ(own.Serve(), 15);
  });
}

// Nobody else could take its portion: no backup task helps.
TEST(BatchTest, WorkersThatSayNothingEndTheRun) {
  const Layout layout = MakeLayout();
  Straggler straggler;
  try {
    RunRanks(2, kTimeout, [&](World& world) {
      if (world.rank() == 0) {
        BatchLeader leader(world, layout, kPortions, /*backups=*/true, /*stall_s=*/0.5);
        leader.Put(Lbfgs::kPoint, std::vector<float>(layout.weights, 0.0f));
        try {
          leader.Evaluate(Lbfgs::kPoint, Lbfgs::kGradient);
        } catch (const Error&) {
          straggler.Release();
          throw;
        }
        return;
      }
      Toy toy(layout);
      toy.before = [&](int portion) { straggler.Before(0, portion); };
      BatchWorker own({.world = world,
                       .portions = toy,
                       .layout = layout,
                       .vectors = kVectors,
                       .decay = 0,
                       .signal = [] { return 0; },
                       .meet = [](int64_t) {}});
      own.Serve();
    });
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 has not answered for"), std::string::npos)
        << error.what();
  }
}

TEST(BatchTest, WithoutBackupsEveryPortionIsComputedOnce) {
  std::mutex mutex;
  std::multiset<int> computed;
  const Result result = Together(3, 0, 0, /*backups=*/false, [&](int, int portion) {
    const std::lock_guard lock(mutex);
    computed.insert(portion);
  });
  EXPECT_EQ(computed.size(), size_t(kPortions));
  EXPECT_EQ(std::set<int>(computed.begin(), computed.end()).size(), size_t(kPortions));
  int64_t samples = 0;
  for (const ClientStats& worker : result.workers) samples += worker.samples;
  EXPECT_EQ(samples, kPortions * kSamples);
}

TEST(BatchTest, AnErrorInAPortionEndsAll) {
  try {
    Together(2, 3, 0, true, [](int, int portion) {
      if (portion == 11) throw Error("the disk is gone");
    });
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the disk is gone"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace trireme
