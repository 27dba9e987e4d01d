#include "strategy/server/rule.h"

#include <gtest/gtest.h>

#include <array>

#include "base/state_image.h"
#include "flat/cpu/host.h"

namespace trireme {
namespace {

// Two parameters, of which one decays, and one statistic.
Layout SmallLayout() {
  Layout layout;
  layout.parameters = {{0, 16}, {16, 5}};
  layout.decays = {true, false};
  layout.weights = 32;
  layout.statistics = {{32, 1}};
  layout.state = 48;
  layout.summand = 64;
  return layout;
}

const Layout kLayout = SmallLayout();
const size_t kVariance = kLayout.statistics[0].begin;

// A rule and the centre that it moves.
class Bench {
 public:
  using Make = std::function<std::unique_ptr<ServerRule>(Device&)>;
  explicit Bench(const Make& make) : queue_(device_.NewQueue()), centre_(device_, kLayout.state) {
    rule_ = make(device_);
  }
  std::span<float> centre() { return centre_.slice().host(); }
  ServerRule& rule() { return *rule_; }
  Queue& queue() { return *queue_; }

  struct Push {
    std::vector<float> body;
    int64_t samples = 1;
  };
  void Apply(std::vector<Push> pushes, int64_t step = 0, float share = 1) {
    std::vector<ServerRule::Part> parts;
    for (Push& push : pushes) {
      parts.push_back({{push.body.data(), push.body.size(), &device_}, push.samples});
    }
    rule_->Apply(*queue_, parts, step, share, centre_);
    queue_->Sync();
  }

 private:
  HostDevice device_;
  const std::unique_ptr<Queue> queue_;
  Buffer centre_;
  std::unique_ptr<ServerRule> rule_;
};

Bench::Make Round(float momentum) {
  return [=](Device& device) { return MakeRoundRule(momentum, kLayout, device); };
}

// Batch-norm's variance begins at 1 and falls to what the layer has.
TEST(RoundRule, AVarianceThatFallsIsTheMeanOfTheClientsAndNeverNegative) {
  Bench bench(Round(0.9f));
  bench.centre()[kVariance] = 1;
  double spread = 1;
  for (int round = 0; round < 20; ++round, spread *= 0.5) {
    std::vector<float> small(kLayout.state), large(kLayout.state);
    small[kVariance] = float(0.01 + 0.5 * spread);
    large[kVariance] = float(0.02 + spread);
    bench.Apply({{small, 10}, {large, 30}});
    const double mean = (10 * (0.01 + 0.5 * spread) + 30 * (0.02 + spread)) / 40;
    EXPECT_NEAR(bench.centre()[kVariance], mean, 1e-6) << round;
    EXPECT_GT(bench.centre()[kVariance], 0) << round;
  }
}

// Its checkpoints hold a velocity of the whole state.
TEST(RoundRule, GoesOnFromACheckpointOfAnOlderVersion) {
  std::vector<float> velocity(kLayout.state, 0.5f);
  StateImage older;
  older.Tensor("centre.velocity", std::array{int64_t(velocity.size())}, velocity);
  Bench bench(Round(0.5f));
  bench.rule().Load(bench.queue(), older);
  bench.Apply({{std::vector<float>(kLayout.state, 1.0f)}});
  EXPECT_FLOAT_EQ(bench.centre()[3], 1.25f);  // 1 + 0.5 * 0.5
  EXPECT_FLOAT_EQ(bench.centre()[kVariance], 1);

  StateImage now;
  bench.rule().Save(bench.queue(), now);
  EXPECT_EQ(now.Shape("centre.velocity"), std::vector{int64_t(kLayout.weights)});
  Bench next(Round(0.5f));
  next.rule().Load(next.queue(), now);
  next.Apply({{std::vector<float>(kLayout.state, 1.0f)}});
  EXPECT_FLOAT_EQ(next.centre()[3], 1.625f);  // 1 + 0.5 * 1.25
}

}  // namespace
}  // namespace trireme
