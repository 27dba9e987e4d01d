#include "optimizer/updater.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "flat/cpu/host.h"

namespace trireme {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Two layers and a norm, laid out backwards, with gaps: bias, weight, norm, weight; 5 statistics.
Layout MakeLayout(std::vector<double> rates) {
  Layout layout;
  layout.rates = std::move(rates);
  layout.parameters = {{96, 33}, {80, 7}, {16, 60}, {0, 3}};
  layout.decays = {true, false, true, false};
  layout.weights = 144;
  layout.statistics = {{144, 5}};
  layout.state = 160;
  layout.summand = 162;
  return layout;
}

// A model on the host and, beside it, the same in plain double loops.
class Model {
 public:
  explicit Model(const OptimizerOptions& options, std::vector<double> rates = {})
      : options_(options),
        layout_(MakeLayout(std::move(rates))),
        updater_(options, Schedule(options, 10, 100, 256), layout_, device_),
        state_(device_, layout_.state),
        summand_(device_, layout_.summand),
        want_(layout_.state),
        a_(layout_.weights),
        b_(layout_.weights) {
    const std::span<float> x = state_.slice().host();
    EachUsed(layout_.state, [&](size_t i) { want_[i] = x[i] = float(random_.Normal(draws_++)); });
  }

  void DrawSummand() {
    const std::span<float> x = summand_.slice().host();
    EachUsed(layout_.summand, [&](size_t i) { x[i] = float(random_.Normal(draws_++)); });
  }
  void Apply(int64_t step) { updater_.Apply(*queue_, step, summand_, state_); }

  // PyTorch's documentation, word by word.
  void ApplyPlain(int64_t step, int64_t count, double factor = 1) {
    const std::span<float> x = summand_.slice().host();
    for (size_t p = 0; p < layout_.parameters.size(); ++p) {
      const double lr = updater_.rate(step) * layout_.rate(p);
      const double decay = layout_.decays[p] ? options_.weight_decay : 0;
      if (FindRule(options_.name).by_tensor) {
        StepTensorPlain(lr, decay, count, factor, x, layout_.parameters[p], layout_.decays[p]);
        continue;
      }
      for (size_t i = layout_.parameters[p].begin; i < layout_.parameters[p].end(); ++i) {
        StepPlain(lr, decay, count, factor * x[i], want_[i], a_[i], b_[i]);
      }
    }
    for (const Range& r : layout_.statistics) {
      for (size_t i = r.begin; i < r.end(); ++i) want_[i] = 0.9 * want_[i] + 0.1 * x[i];
    }
  }

  void ExpectEqual(double tolerance = 2e-6) {
    const std::span<float> got = state_.slice().host();
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want_[i], tolerance * (1 + std::fabs(want_[i]))) << i;
    }
  }

  std::span<float> state() { return state_.slice().host(); }
  std::span<float> summand() { return summand_.slice().host(); }
  const Layout& layout() const { return layout_; }
  Updater& updater() { return updater_; }
  Queue& queue() { return *queue_; }

 private:
  template <class F>
  void EachUsed(size_t most, const F& f) {  // all but the gaps
    for (const auto* ranges : {&layout_.parameters, &layout_.statistics}) {
      for (const Range& r : *ranges) {
        for (size_t i = r.begin; i < r.end(); ++i) f(i);
      }
    }
    for (size_t i = layout_.state; i < most; ++i) f(i);
  }
  void StepPlain(double lr, double decay, int64_t t, double g, double& w, double& a, double& b) {
    const OptimizerOptions& o = options_;
    if (o.name == "adamw") w -= lr * decay * w;
    if (o.name != "adamw") g += decay * w;
    if (o.name == "sgd") {
      a = t == 1 ? g : o.momentum * a + g;
      w -= lr * (o.momentum == 0 ? g : o.nesterov ? g + o.momentum * a : a);
    } else if (o.name == "adagrad") {
      a += g * g;
      w -= lr * g / (std::sqrt(a) + o.epsilon);
    } else {
      a = o.beta1 * a + (1 - o.beta1) * g;
      b = o.beta2 * b + (1 - o.beta2) * g * g;
      const double mean = a / (1 - std::pow(o.beta1, t)), square = b / (1 - std::pow(o.beta2, t));
      w -= lr * mean / (std::sqrt(square) + o.epsilon);
    }
  }

  // The papers' algorithms, with phi(x) = x and a ratio of 1 for biases, norms and zeros.
  void StepTensorPlain(double lr, double decay, int64_t t, double factor, std::span<const float> x,
                       Range range, bool adapts) {
    const OptimizerOptions& o = options_;
    std::vector<double> step(range.size);
    double weights = 0, gradients = 0, steps = 0;
    for (size_t j = 0; j < range.size; ++j) {
      const size_t i = range.begin + j;
      const double g = factor * x[i];
      step[j] = g + decay * want_[i];
      if (o.name == "lamb") {
        a_[i] = o.beta1 * a_[i] + (1 - o.beta1) * g;
        b_[i] = o.beta2 * b_[i] + (1 - o.beta2) * g * g;
        const double mean = a_[i] / (1 - std::pow(o.beta1, t));
        const double square = b_[i] / (1 - std::pow(o.beta2, t));
        step[j] = mean / (std::sqrt(square) + o.epsilon) + decay * want_[i];
      }
      weights += want_[i] * want_[i];
      gradients += g * g;
      steps += step[j] * step[j];
    }
    double ratio = 1;
    if (adapts && weights > 0 && o.name == "lars" && gradients > 0) {
      ratio = o.trust * std::sqrt(weights) / (std::sqrt(gradients) + decay * std::sqrt(weights));
    }
    if (adapts && weights > 0 && o.name == "lamb" && steps > 0) ratio = std::sqrt(weights / steps);
    for (size_t j = 0; j < range.size; ++j) {
      const size_t i = range.begin + j;
      double move = lr * ratio * step[j];
      if (o.name == "lars") move = a_[i] = o.momentum * a_[i] + move;
      want_[i] -= move;
    }
  }

  const OptimizerOptions options_;
  const Layout layout_;
  HostDevice device_;
  std::unique_ptr<Queue> queue_ = device_.NewQueue();
  Updater updater_;
  Buffer state_, summand_;
  std::vector<double> want_, a_, b_;
  const Random random_{7};
  uint64_t draws_ = 0;
};

std::vector<OptimizerOptions> AllSettings() {
  std::vector<OptimizerOptions> all;
  for (double decay : {0.0, 0.05}) {
    for (double momentum : {0.0, 0.9}) {
      all.push_back({.name = "sgd", .lr = 0.05, .momentum = momentum, .weight_decay = decay});
    }
    all.push_back({.name = "sgd", .lr = 0.05, .nesterov = true, .weight_decay = decay});
    for (const char* name : {"adam", "adamw", "adagrad"}) {
      all.push_back({.name = name, .lr = 0.05, .weight_decay = decay, .schedule = "cosine"});
    }
    for (double momentum : {0.0, 0.9}) {
      all.push_back({.name = "lars",
                     .lr = 0.05,
                     .momentum = momentum,
                     .weight_decay = decay,
                     .trust = 0.5,
                     .schedule = "cosine"});
    }
    all.push_back({.name = "lamb", .lr = 0.05, .weight_decay = decay, .schedule = "cosine"});
  }
  return all;
}

TEST(Updater, FollowsTheFormulasOverManySteps) {
  for (const OptimizerOptions& options : AllSettings()) {
    SCOPED_TRACE(options.name);
    Model model(options);
    for (int64_t step = 0; step < 20; ++step) {
      model.DrawSummand();
      model.Apply(step);
      model.ApplyPlain(step, step + 1);
      model.ExpectEqual(1e-5);
    }
  }
}

TEST(Updater, FollowsTheFormulasWhereLayersHaveRatesOfTheirOwn) {
  for (const OptimizerOptions& options : AllSettings()) {
    SCOPED_TRACE(options.name);
    for (const std::vector<double>& rates :
         {std::vector<double>{1, 0.1, 0.1, 2.5}, std::vector<double>{0.5, 0, 1, 0.5}}) {
      Model model(options, rates);
      EXPECT_FALSE(model.updater().forms_gradients());
      for (int64_t step = 0; step < 8; ++step) {
        model.DrawSummand();
        model.Apply(step);
        model.ApplyPlain(step, step + 1);
        model.ExpectEqual(1e-5);
      }
    }
  }
}

// One factor for all is another rate, to the bit; a factor of 1 changes nothing.
TEST(Updater, AFactorForAllIsARate) {
  for (OptimizerOptions options : AllSettings()) {
    SCOPED_TRACE(options.name);
    Model plain(options), ones(options, {1, 1, 1, 1}), halves(options, {0.5, 0.5, 0.5, 0.5});
    options.lr *= 0.5;
    Model slow(options);
    for (int64_t step = 0; step < 5; ++step) {
      for (Model* model : {&plain, &ones, &halves, &slow}) {
        model->DrawSummand();
        model->Apply(step);
      }
    }
    EXPECT_TRUE(std::ranges::equal(plain.state(), ones.state()));
    EXPECT_TRUE(std::ranges::equal(halves.state(), slow.state()));
    EXPECT_FALSE(std::ranges::equal(plain.state(), slow.state()));
  }
}

TEST(Updater, EveryRuleIsCheckedAboveAndUnknownNamesAreRefused) {
  for (const RuleDef& rule : AllRules()) {
    if (rule.whole) continue;  // optimizer/lbfgs_test.cc
    const auto all = AllSettings();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](auto& o) { return o.name == rule.name; }));
  }
  EXPECT_THROW(MakeRule({.name = "sdg"}), UsageError);
  EXPECT_THROW(MakeRule({.momentum = 0, .nesterov = true}), UsageError);
}

TEST(Updater, SparesBiasesAndNormsFromDecay) {
  Model model({.lr = 0.5, .momentum = 0, .weight_decay = 0.5});
  const std::vector<float> before(model.state().begin(), model.state().end());
  model.Apply(0);  // no gradient: only decay moves
  for (size_t p = 0; p < 4; ++p) {
    const Range r = model.layout().parameters[p];
    for (size_t i = r.begin; i < r.end(); ++i) {
      EXPECT_EQ(model.state()[i], before[i] * (model.layout().decays[p] ? 0.75f : 1.0f));
    }
  }
}

// A tensor of zeros has no length to go by; nor has one whose gradient is zero.
TEST(Updater, TensorsWithoutALengthMoveAsWithoutARatio) {
  for (const char* name : {"lars", "lamb"}) {
    Model model({.name = name, .lr = 0.5, .momentum = 0});
    const Range zero = model.layout().parameters[0], still = model.layout().parameters[2];
    model.DrawSummand();
    for (size_t i = zero.begin; i < zero.end(); ++i) model.state()[i] = 0;
    for (size_t i = still.begin; i < still.end(); ++i) model.summand()[i] = 0;
    const std::vector<float> before(model.state().begin(), model.state().end());
    model.Apply(0);
    for (size_t i = zero.begin; i < zero.end(); ++i) {
      const float g = model.summand()[i];
      const float want = std::string(name) == "lars" ? -0.5f * g : std::copysign(0.5f, -g);
      EXPECT_NEAR(model.state()[i], want, 1e-5) << name;
    }
    for (size_t i = still.begin; i < still.end(); ++i) EXPECT_EQ(model.state()[i], before[i]);
  }
}

TEST(Updater, LengthsOfTensorsNeedWrittenGradients) {
  EXPECT_TRUE(Model({.name = "adamw"}).updater().forms_gradients());
  EXPECT_FALSE(Model({.name = "lars"}).updater().forms_gradients());
  EXPECT_FALSE(Model({.name = "lamb"}).updater().forms_gradients());
  EXPECT_EQ(SlicesOf({.name = "lars"}), 1u);
  EXPECT_EQ(SlicesOf({.name = "lamb"}), 3u);  // one of them is not kept
  EXPECT_EQ(Model({.name = "lamb"}).updater().slices().size(), 2u);
}

TEST(Updater, ClipsByTheNormOfTheGradientsAlone) {
  Model model({.lr = 0.1, .clip = 2});
  model.DrawSummand();
  model.summand()[150 - 3] = 1e6f;  // a statistic is no gradient
  double squares = 0;
  for (size_t i = 0; i < model.layout().weights; ++i) squares += std::pow(model.summand()[i], 2);
  ASSERT_GT(std::sqrt(squares), 2);
  model.Apply(0);
  model.ApplyPlain(0, 1, 2 / std::sqrt(squares));
  model.ExpectEqual();
}

TEST(Updater, SkipsWhatIsNotFiniteAndCountsIt) {
  for (const OptimizerOptions& options : AllSettings()) {
    for (size_t at : {size_t{0}, size_t{128}, size_t{146}}) {  // two gradients, a statistic
      Model model(options);
      model.DrawSummand();
      model.Apply(0);
      const std::vector<float> before(model.state().begin(), model.state().end());
      model.summand()[at] = kNan;
      model.Apply(1);
      EXPECT_TRUE(std::equal(before.begin(), before.end(), model.state().begin()));
      EXPECT_EQ(model.updater().Skipped(model.queue()), 1);
      model.DrawSummand();
      model.Apply(2);
      for (float x : model.state()) EXPECT_TRUE(std::isfinite(x));
      EXPECT_EQ(model.updater().Skipped(model.queue()), 1);
    }
  }
}

TEST(Updater, AfterAResetItIsAsNew) {
  for (const OptimizerOptions& options : AllSettings()) {
    Model used(options), fresh(options);
    used.DrawSummand();
    used.Apply(0);
    used.updater().Reset(used.queue());
    fresh.DrawSummand();
    std::copy(fresh.state().begin(), fresh.state().end(), used.state().begin());
    used.Apply(7);
    fresh.Apply(7);
    EXPECT_TRUE(std::equal(fresh.state().begin(), fresh.state().end(), used.state().begin()));
  }
}

// What a checkpoint holds, in memory.
class Memory : public StateWriter, public StateReader {
 public:
  void Tensor(std::string_view name, std::span<const int64_t>,
              std::span<const float> data) override {
    EXPECT_TRUE(tensors_.emplace(name, std::vector(data.begin(), data.end())).second) << name;
  }
  void Int(std::string_view name, int64_t value) override {
    EXPECT_TRUE(ints_.emplace(name, value).second) << name;
  }
  void Ints(std::string_view, std::span<const int64_t>) override { FAIL(); }
  void Real(std::string_view name, double value) override {
    EXPECT_TRUE(reals_.emplace(name, value).second) << name;
  }
  void Text(std::string_view, std::string_view) override { FAIL(); }

  bool Has(std::string_view name) const override { return reals_.contains(std::string(name)); }
  std::vector<std::string> TensorNames() const override { return {}; }
  std::vector<int64_t> Shape(std::string_view) const override { return {}; }
  void Tensor(std::string_view name, std::span<const int64_t> shape,
              std::span<float> out) const override {
    const std::vector<float>& data = tensors_.at(std::string(name));
    ASSERT_EQ(shape.size(), 1u);
    ASSERT_EQ(size_t(shape[0]), data.size());
    std::copy(data.begin(), data.end(), out.begin());
  }
  int64_t Int(std::string_view name) const override { return ints_.at(std::string(name)); }
  std::vector<int64_t> Ints(std::string_view) const override { return {}; }
  double Real(std::string_view name) const override { return reals_.at(std::string(name)); }
  std::string Text(std::string_view) const override { return {}; }

 private:
  std::map<std::string, std::vector<float>> tensors_;
  std::map<std::string, int64_t> ints_;
  std::map<std::string, double> reals_;
};

TEST(Updater, GoesOnFromACheckpointWithTheSameBits) {
  for (const OptimizerOptions& options : AllSettings()) {
    Model first(options), second(options);
    first.summand()[0] = kNan;
    first.Apply(0);
    for (int64_t step = 1; step < 4; ++step) {
      first.DrawSummand();
      first.Apply(step);
    }
    Memory memory;
    first.updater().Save(first.queue(), memory);
    second.updater().Load(second.queue(), memory);
    std::copy(first.state().begin(), first.state().end(), second.state().begin());
    for (int64_t step = 4; step < 7; ++step) {
      first.DrawSummand();
      std::copy(first.summand().begin(), first.summand().end(), second.summand().begin());
      first.Apply(step);
      second.Apply(step);
    }
    EXPECT_TRUE(std::equal(first.state().begin(), first.state().end(), second.state().begin()));
    EXPECT_EQ(second.updater().Skipped(second.queue()), 1);
  }
}

// Gradients of a scaled loss are that much larger, and move the weights as others do.
TEST(Updater, UnscalesWhatAScaledLossHasMade) {
  for (OptimizerOptions options : AllSettings()) {
    Model plain(options);
    options.scales_loss = true;
    options.loss_scale = 4096;
    Model scaled(options);
    ASSERT_EQ(scaled.updater().loss_scale().size, 1u);
    EXPECT_EQ(*scaled.updater().loss_scale().data, 4096);
    EXPECT_EQ(plain.updater().loss_scale().size, 0u);
    for (int64_t step = 0; step < 3; ++step) {
      plain.DrawSummand();
      scaled.DrawSummand();
      for (size_t i = 0; i < plain.layout().weights; ++i) scaled.summand()[i] *= 4096;
      plain.Apply(step);
      scaled.Apply(step);
    }
    EXPECT_TRUE(std::equal(plain.state().begin(), plain.state().end(), scaled.state().begin()));
  }
}

TEST(Updater, KeepsTheLossScaleInACheckpoint) {
  const OptimizerOptions options{.loss_scale = 1024, .loss_scale_steps = 3, .scales_loss = true};
  Model first(options), second(options);
  first.summand()[0] = kNan;
  first.Apply(0);
  for (int64_t step = 1; step < 6; ++step) {
    first.DrawSummand();
    first.Apply(step);
  }
  Memory memory;
  first.updater().Save(first.queue(), memory);
  EXPECT_EQ(memory.Real("optimizer.loss_scale"), 1024);  // it fell and grew
  EXPECT_EQ(memory.Int("optimizer.loss_scale_steps"), 2);
  second.updater().Load(second.queue(), memory);
  const auto got = second.updater().GetScale(second.queue());
  EXPECT_EQ(got[UpdateScale::kSkipped], 1);
  EXPECT_EQ(got[UpdateScale::kLoss], 1024);
  EXPECT_EQ(got[UpdateScale::kFinite], 2);
  second.DrawSummand();
  second.Apply(6);
  EXPECT_EQ(*second.updater().loss_scale().data, 2048);

  for (const double bad : {0.0, -1.0, 1e300, double(kNan)}) {
    Memory damaged;
    damaged.Tensor("optimizer.velocity", {}, std::vector<float>(first.layout().weights));
    damaged.Int("optimizer.updates", 1);
    damaged.Int("optimizer.skipped", 0);
    damaged.Int("optimizer.loss_scale_steps", 0);
    damaged.Real("optimizer.loss_scale", bad);
    EXPECT_THROW(second.updater().Load(second.queue(), damaged), Error) << bad;
  }
}

TEST(Updater, RefusesACheckpointWithANegativeCount) {
  Model model({.name = "adam"});
  Memory memory;
  memory.Tensor("optimizer.mean", {}, std::vector<float>(model.layout().weights));
  memory.Tensor("optimizer.square", {}, std::vector<float>(model.layout().weights));
  memory.Int("optimizer.updates", -1);
  memory.Int("optimizer.skipped", 0);
  EXPECT_THROW(model.updater().Load(model.queue(), memory), Error);
}

TEST(Updater, KeepsNoVelocityWithoutMomentum) {
  EXPECT_TRUE(Model({.momentum = 0}).updater().slices().empty());
  Model model({.momentum = 0.9});
  ASSERT_EQ(model.updater().slices().size(), 1u);
  EXPECT_STREQ(model.updater().slices()[0].name, "velocity");
  EXPECT_EQ(model.updater().slices()[0].slice.size, model.layout().weights);
}

}  // namespace
}  // namespace trireme
