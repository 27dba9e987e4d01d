#include "strategy/server/rule.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

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

// ---- every rule against the same in double, by hand

// The centre, and what a rule remembers, as long as the weights.
struct Play {
  std::vector<double> centre = std::vector<double>(kLayout.state);
  std::vector<double> memory = std::vector<double>(kLayout.weights);
};

struct RuleCase {
  const char* name;
  Bench::Make make;
  std::function<void(Play&, std::span<const Bench::Push>, double share)> play;
};
void PrintTo(const RuleCase& c, std::ostream* out) { *out << c.name; }

Bench::Make UpdateBy(const OptimizerOptions& options) {
  return [=](Device& device) {
    return MakeUpdateRule(options, Schedule(options, 10, 100, 8), kLayout, device);
  };
}

void PlayAdd(Play& play, std::span<const Bench::Push> pushes, double share) {
  for (const Bench::Push& push : pushes) {
    for (size_t i = 0; i < kLayout.state; ++i) play.centre[i] += share * push.body[i];
  }
}

// By how much a push counts.
template <class Share>
auto PlayMix(Share of) {
  return [=](Play& play, std::span<const Bench::Push> pushes, double share) {
    for (const Bench::Push& push : pushes) {
      const double a = std::min(1.0, share * of(push));
      for (size_t i = 0; i < kLayout.state; ++i) {
        play.centre[i] = (1 - a) * play.centre[i] + a * push.body[i];
      }
    }
  };
}

// `step`: the gradient, the weight, what is remembered; how far the weight goes.
template <class Step>
auto PlayUpdate(Step step, double decay = 0) {
  return [=](Play& play, std::span<const Bench::Push> pushes, double share) {
    for (size_t i = 0; i < kLayout.state; ++i) {
      double sum = 0, &value = play.centre[i];
      for (const Bench::Push& push : pushes) sum += push.body[i];
      if (i >= kLayout.weights) {
        value += 0.1 * (sum - value);
        continue;
      }
      const bool decays = i < kLayout.parameters[0].end();
      value += step(share * sum + (decays ? decay * value : 0), play.memory[i]);
    }
  };
}

auto PlayRound(double momentum) {
  return [=](Play& play, std::span<const Bench::Push> pushes, double) {
    double samples = 0;
    for (const Bench::Push& push : pushes) samples += double(push.samples);
    for (size_t i = 0; i < kLayout.state; ++i) {
      double mean = 0, &value = play.centre[i];
      for (const Bench::Push& push : pushes) mean += double(push.samples) / samples * push.body[i];
      if (i >= kLayout.weights) {
        value = mean;
        continue;
      }
      play.memory[i] = momentum * play.memory[i] + mean - value;
      value += play.memory[i];
    }
  };
}

class Oracle : public testing::TestWithParam<RuleCase> {};

// Three clients: alone in changing order, two or all together, fresh and stale.
TEST_P(Oracle, ARuleDoesWhatItsFormulaSays) {
  const struct {
    std::vector<int> clients;
    float share = 1;
  } updates[] = {{{0}},    {{1}},       {{0}},          {{2}, 0.5f}, {{1, 2}}, {{0, 1, 2}},
                 {{2, 0}}, {{1}, 0.2f}, {{0, 1, 2}, 1}, {{2}},       {{2}},    {{0}, 0.75f}};
  constexpr int64_t kSamples[] = {10, 25, 60};
  Bench bench(GetParam().make);
  Play play;
  for (size_t i = 0; i < kLayout.state; ++i) {
    bench.centre()[i] = float(std::cos(0.3 * double(i)));
    play.centre[i] = bench.centre()[i];
  }
  int number = 0;
  for (const auto& [clients, share] : updates) {
    std::vector<Bench::Push> pushes;
    for (const int client : clients) {
      Bench::Push push{std::vector<float>(kLayout.state), kSamples[client]};
      for (size_t i = 0; i < kLayout.state; ++i) {
        push.body[i] = float(std::sin(1 + 3 * number + 7 * client + 0.37 * double(i)));
      }
      pushes.push_back(std::move(push));
    }
    GetParam().play(play, pushes, share);
    bench.Apply(std::move(pushes), number, share);
    for (size_t i = 0; i < kLayout.state; ++i) {
      ASSERT_NEAR(bench.centre()[i], play.centre[i], 2e-5)
          << "update " << number << ", value " << i;
    }
    ++number;
  }
}

std::vector<RuleCase> RuleCases() {
  const auto sgd = [](double rate, double momentum, bool nesterov = false) {
    return [=](double g, double& velocity) {
      velocity = momentum * velocity + g;
      return -rate * (nesterov ? g + momentum * velocity : velocity);
    };
  };
  const auto adagrad = [](double g, double& sum) {
    sum += g * g;
    return -0.05 * g / (std::sqrt(sum) + 1e-8);
  };
  return {
      {"elastic", [](Device&) { return MakeAddRule(); }, PlayAdd},
      {"halve", [](Device&) { return MakeMixRule(0.5f, 0); },
       PlayMix([](const Bench::Push&) { return 0.5; })},
      {"average", [](Device&) { return MakeMixRule(0.25f, 20); },
       PlayMix([](const Bench::Push& push) { return 0.25 * double(push.samples) / 20; })},
      {"gradient", UpdateBy({.lr = 0.1, .momentum = 0}), PlayUpdate(sgd(0.1, 0))},
      {"gradient_decay", UpdateBy({.lr = 0.1, .momentum = 0, .weight_decay = 0.05}),
       PlayUpdate(sgd(0.1, 0), 0.05)},
      {"gradient_momentum", UpdateBy({.lr = 0.1, .momentum = 0.8}), PlayUpdate(sgd(0.1, 0.8))},
      {"gradient_nesterov", UpdateBy({.lr = 0.1, .momentum = 0.8, .nesterov = true}),
       PlayUpdate(sgd(0.1, 0.8, true))},
      {"gradient_adagrad", UpdateBy({.name = "adagrad", .lr = 0.05}), PlayUpdate(adagrad)},
      {"federated", Round(0), PlayRound(0)},
      {"federated_momentum", Round(0.6f), PlayRound(0.6)},
  };
}
INSTANTIATE_TEST_SUITE_P(Rules, Oracle, testing::ValuesIn(RuleCases()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace trireme
