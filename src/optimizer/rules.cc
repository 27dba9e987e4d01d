#include "optimizer/rules.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "optimizer/layerwise.h"
#include "optimizer/lbfgs.h"

namespace trireme {
namespace {

class SgdRule : public Rule {
 public:
  explicit SgdRule(const OptimizerOptions& o)
      : momentum_(float(o.momentum)), nesterov_(o.nesterov), skip_zeros_(o.skip_zeros) {
    if (nesterov_ && momentum_ == 0) {
      throw UsageError("optimizer.nesterov needs optimizer.momentum, which is 0");
    }
  }
  std::span<const char* const> keeps() const override {
    static constexpr const char* kNames[] = {"velocity"};
    return {kNames, momentum_ != 0 ? size_t{1} : size_t{0}};
  }
  void Apply(Queue& queue, const Update& u) override {
    const SgdRates rates = {float(u.rate), momentum_, nesterov_, skip_zeros_};
    flat::Update(queue, rates, u.scale, u.decays, u.gradients, {u.own.empty() ? Slice{} : u.own[0]},
                 u.weights);
  }

 private:
  const float momentum_;
  const bool nesterov_, skip_zeros_;
};

class AdamRule : public Rule {
 public:
  AdamRule(const OptimizerOptions& o, bool decoupled)
      : beta1_(o.beta1), beta2_(o.beta2), epsilon_(o.epsilon), decoupled_(decoupled) {}
  std::span<const char* const> keeps() const override {
    static constexpr const char* kNames[] = {"mean", "square"};
    return kNames;
  }
  void Apply(Queue& queue, const Update& u) override {
    const AdamRates rates = {
        .rate = float(u.rate / (1 - std::pow(beta1_, double(u.count)))),
        .beta1 = float(beta1_),
        .rest1 = float(1 - beta1_),
        .beta2 = float(beta2_),
        .rest2 = float(1 - beta2_),
        .root = float(1 / std::sqrt(1 - std::pow(beta2_, double(u.count)))),
        .epsilon = float(epsilon_),
        .decoupled = decoupled_,
        .shrink = float(u.rate),
    };
    flat::Update(queue, rates, u.scale, u.decays, u.gradients, {u.own[0], u.own[1]}, u.weights);
  }

 private:
  const double beta1_, beta2_, epsilon_;
  const bool decoupled_;
};

class AdagradRule : public Rule {
 public:
  explicit AdagradRule(const OptimizerOptions& o) : epsilon_(float(o.epsilon)) {}
  std::span<const char* const> keeps() const override {
    static constexpr const char* kNames[] = {"sum"};
    return kNames;
  }
  void Apply(Queue& queue, const Update& u) override {
    flat::Update(queue, AdagradRates{float(u.rate), epsilon_}, u.scale, u.decays, u.gradients,
                 {u.own[0]}, u.weights);
  }

 private:
  const float epsilon_;
};

std::unique_ptr<Rule> MakeSgd(const OptimizerOptions& o) { return std::make_unique<SgdRule>(o); }
std::unique_ptr<Rule> MakeAdam(const OptimizerOptions& o) {
  return std::make_unique<AdamRule>(o, /*decoupled=*/false);
}
std::unique_ptr<Rule> MakeAdamW(const OptimizerOptions& o) {
  return std::make_unique<AdamRule>(o, /*decoupled=*/true);
}
std::unique_ptr<Rule> MakeAdagrad(const OptimizerOptions& o) {
  return std::make_unique<AdagradRule>(o);
}

constexpr RuleDef kRules[] = {
    {"sgd", "stochastic gradient descent: momentum, nesterov, weight_decay", 0.02,
     "momentum nesterov skip_zeros", MakeSgd},
    {"adam", "Adam (Kingma, Ba 2015): beta1, beta2, epsilon, weight_decay as L2 penalty", 0.001,
     "beta1 beta2 epsilon", MakeAdam},
    {"adamw", "Adam with decoupled weight_decay (Loshchilov, Hutter 2019)", 0.001,
     "beta1 beta2 epsilon", MakeAdamW},
    {"adagrad", "Adagrad (Duchi, Hazan, Singer 2011): epsilon, weight_decay", 0.01, "epsilon",
     MakeAdagrad},
    {"lars",
     "LARS (You, Gitman, Ginsburg 2017), for large batches: SGD whose rate in each tensor is "
     "multiplied by trust |w| / (|g| + weight_decay |w|); momentum, trust, weight_decay; biases "
     "and norms as with sgd",
     1, "momentum trust", MakeLars, /*whole=*/false, /*by_tensor=*/true},
    {"lamb",
     "LAMB (You et al. 2020), for large batches: in each tensor adamw's step, multiplied by the "
     "ratio of the lengths of weights and step; beta1, beta2, epsilon, weight_decay; biases and "
     "norms as with adam",
     0.005, "beta1 beta2 epsilon", MakeLamb, /*whole=*/false, /*by_tensor=*/true},
    {"lbfgs",
     "L-BFGS (Liu, Nocedal 1989; over ranks: Sandblaster, Dean et al. 2012): each epoch is one "
     "step "
     "with the gradient of all samples and a line search; history, line_*, portion, backups, "
     "weight_decay as L2 penalty",
     0, "history line_decrease line_curvature line_evaluations portion backups", nullptr,
     /*whole=*/true},
};

constexpr const char* kKeysOfSteps[] = {"trainer.batch",         "trainer.batch_per_worker",
                                        "trainer.shards",        "trainer.accumulate",
                                        "trainer.clip",          "optimizer.lr",
                                        "optimizer.schedule",    "optimizer.decay_epochs",
                                        "optimizer.decay_every", "optimizer.decay_factor",
                                        "optimizer.lr_min",      "optimizer.warmup_epochs",
                                        "optimizer.scale_lr",    "optimizer.scale_batch",
                                        "optimizer.rates"};

std::vector<std::string> KeysOf(const RuleDef& rule) { return Split(rule.keys, ' '); }

}  // namespace

std::span<const RuleDef> AllRules() { return kRules; }

const RuleDef& FindRule(std::string_view name) {
  std::string names;
  for (const RuleDef& rule : kRules) {
    if (name == rule.name) return rule;
    names += (names.empty() ? "" : ", ") + std::string(rule.name);
  }
  throw UsageError("optimizer.name must be one of {}, got \"{}\"", names, name);
}

std::unique_ptr<Rule> MakeRule(const OptimizerOptions& options) {
  const RuleDef& rule = FindRule(options.name);
  TRIREME_ASSERT(!rule.whole);
  return rule.make(options);
}

size_t SlicesOf(const OptimizerOptions& options) {
  if (FindRule(options.name).whole) return size_t(Lbfgs::VectorsFor(options.history));
  const std::unique_ptr<Rule> rule = MakeRule(options);
  return rule->keeps().size() + rule->spare();
}

std::span<const char* const> KeysOfSteps() { return kKeysOfSteps; }

double UsualRate(const OptimizerOptions& options) {
  const RuleDef& rule = FindRule(options.name);
  if (rule.make != MakeSgd) return rule.rate;
  return rule.rate * std::max(1.0, (1 - options.momentum) / (1 - OptimizerOptions{}.momentum));
}

std::vector<std::string> KeysOfOthers(const RuleDef& rule) {
  const std::vector<std::string> own = KeysOf(rule);
  std::vector<std::string> keys;
  for (const RuleDef& other : kRules) {
    for (const std::string& key : KeysOf(other)) {
      const bool known =
          std::ranges::find(own, key) != own.end() || std::ranges::find(keys, key) != keys.end();
      if (!known) keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace trireme
