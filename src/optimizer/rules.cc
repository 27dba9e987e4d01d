#include "optimizer/rules.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace trireme {
namespace {

// part(slice) is the segment's stretch of a slice that is laid out like the weights.
template <class Work>
void EachSegment(const Update& u, const Work& work) {
  for (const Segment& s : u.segments) {
    work(s, [&s](const Slice& slice) { return slice.Sub(s.range.begin, s.range.size); });
  }
}

class SgdRule : public Rule {
 public:
  explicit SgdRule(const OptimizerOptions& o)
      : momentum_(float(o.momentum)), decay_(float(o.weight_decay)), nesterov_(o.nesterov) {
    if (nesterov_ && momentum_ == 0) {
      throw UsageError("optimizer.nesterov needs optimizer.momentum, which is 0");
    }
  }
  std::span<const char* const> keeps() const override {
    static constexpr const char* kNames[] = {"velocity"};
    return {kNames, momentum_ != 0 ? size_t{1} : size_t{0}};
  }
  void Apply(Queue& queue, const Update& u) const override {
    EachSegment(u, [&](const Segment& s, auto part) {
      const SgdRates rates = {float(u.rate), momentum_, s.decays ? decay_ : 0, nesterov_};
      flat::Sgd(queue, rates, u.verdict, part(u.gradients),
                u.own.empty() ? Slice{} : part(u.own[0]), part(u.weights));
    });
  }

 private:
  const float momentum_, decay_;
  const bool nesterov_;
};

class AdamRule : public Rule {
 public:
  AdamRule(const OptimizerOptions& o, bool decoupled)
      : beta1_(o.beta1),
        beta2_(o.beta2),
        epsilon_(o.epsilon),
        decay_(o.weight_decay),
        decoupled_(decoupled) {}
  std::span<const char* const> keeps() const override {
    static constexpr const char* kNames[] = {"mean", "square"};
    return kNames;
  }
  void Apply(Queue& queue, const Update& u) const override {
    AdamRates rates = {
        .rate = float(u.rate / (1 - std::pow(beta1_, double(u.count)))),
        .beta1 = float(beta1_),
        .rest1 = float(1 - beta1_),
        .beta2 = float(beta2_),
        .rest2 = float(1 - beta2_),
        .root = float(1 / std::sqrt(1 - std::pow(beta2_, double(u.count)))),
        .epsilon = float(epsilon_),
    };
    EachSegment(u, [&](const Segment& s, auto part) {
      rates.decay = s.decays && !decoupled_ ? float(decay_) : 0;
      rates.shrink = s.decays && decoupled_ ? float(u.rate * decay_) : 0;
      flat::Adam(queue, rates, u.verdict, part(u.gradients), part(u.own[0]), part(u.own[1]),
                 part(u.weights));
    });
  }

 private:
  const double beta1_, beta2_, epsilon_, decay_;
  const bool decoupled_;
};

class AdagradRule : public Rule {
 public:
  explicit AdagradRule(const OptimizerOptions& o)
      : epsilon_(float(o.epsilon)), decay_(float(o.weight_decay)) {}
  std::span<const char* const> keeps() const override {
    static constexpr const char* kNames[] = {"sum"};
    return kNames;
  }
  void Apply(Queue& queue, const Update& u) const override {
    EachSegment(u, [&](const Segment& s, auto part) {
      const AdagradRates rates = {float(u.rate), epsilon_, s.decays ? decay_ : 0};
      flat::Adagrad(queue, rates, u.verdict, part(u.gradients), part(u.own[0]), part(u.weights));
    });
  }

 private:
  const float epsilon_, decay_;
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
    {"sgd", "stochastic gradient descent: momentum, nesterov, weight_decay", MakeSgd},
    {"adam", "Adam (Kingma, Ba 2015): beta1, beta2, epsilon, weight_decay as L2 penalty", MakeAdam},
    {"adamw", "Adam with decoupled weight_decay (Loshchilov, Hutter 2019)", MakeAdamW},
    {"adagrad", "Adagrad (Duchi, Hazan, Singer 2011): epsilon, weight_decay", MakeAdagrad},
};

}  // namespace

std::vector<Segment> CutSegments(const Layout& layout, bool decay_matters) {
  std::vector<Segment> all;
  for (size_t p = 0; p < layout.parameters.size(); ++p) {
    all.push_back({layout.parameters[p], decay_matters && layout.decays[p]});
  }
  std::sort(all.begin(), all.end(),
            [](const Segment& a, const Segment& b) { return a.range.begin < b.range.begin; });
  std::vector<Segment> merged;
  for (const Segment& s : all) {
    if (merged.empty() || merged.back().decays != s.decays) {
      merged.push_back({{merged.empty() ? 0 : s.range.begin, 0}, s.decays});
    }
  }
  for (size_t i = 0; i < merged.size(); ++i) {  // each reaches to the next, over the gap of zeros
    const size_t end = i + 1 < merged.size() ? merged[i + 1].range.begin : layout.weights;
    merged[i].range.size = end - merged[i].range.begin;
  }
  return merged;
}

std::span<const RuleDef> AllRules() { return kRules; }

std::unique_ptr<Rule> MakeRule(const OptimizerOptions& options) {
  std::string names;
  for (const RuleDef& rule : kRules) {
    if (options.name == rule.name) return rule.make(options);
    names += (names.empty() ? "" : ", ") + std::string(rule.name);
  }
  throw UsageError("optimizer.name is one of {}, got \"{}\"", names, options.name);
}

}  // namespace trireme
