#include "strategy/merge_kinds.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "strategy/make.h"
#include "strategy/merge_elastic.h"
#include "strategy/merge_gradient.h"
#include "strategy/merge_weights.h"

namespace trireme {
namespace {

using WorkerNeeds = MergeKind::WorkerNeeds;
using RuleNeeds = MergeKind::RuleNeeds;

std::unique_ptr<Merge> MakeGradient(WorkerNeeds needs) {
  const StrategyChoice& c = needs.setup.choice;
  return std::make_unique<MergeGradient>(
      needs.client,
      MergeGradient::Pace{.push = c.push,
                          .fetch = c.fetch,
                          .asks = !c.broadcasts,
                          .waits = c.waits(),
                          .clock = c.clocked() ? c.staleness : -1},
      std::move(needs.shared));
}

std::unique_ptr<CentreRule> GradientRule(const RuleNeeds& needs) {
  TRIREME_ASSERT(needs.setup.optimizer && needs.setup.schedule);
  return MakeUpdateRule(*needs.setup.optimizer, *needs.setup.schedule, needs.layout, needs.device);
}

std::unique_ptr<Merge> MakeElastic(WorkerNeeds needs) {
  const StrategyChoice& c = needs.setup.choice;
  return std::make_unique<MergeElastic>(needs.client, c.options.alpha, c.waits());
}

std::unique_ptr<CentreRule> ElasticRule(const RuleNeeds&) { return MakeAddRule(); }

std::unique_ptr<Merge> MakeWeights(WorkerNeeds needs) {
  return std::make_unique<MergeWeights>(needs.client, needs.setup.choice.own_data());
}

std::unique_ptr<CentreRule> HalveRule(const RuleNeeds&) { return MakeMixRule(0.5f, 0); }

std::unique_ptr<CentreRule> AverageRule(const RuleNeeds& needs) {
  const StrategyChoice& c = needs.setup.choice;
  const Plan& plan = needs.setup.plan;
  if (c.pace == PaceKind::kRound) {
    return MakeRoundRule(c.options.outer_momentum, needs.setup.layout.state, needs.device);
  }
  const int clients = std::max(1, needs.clients);
  const double typical =
      c.period ? double(LeaseSize(plan, clients) * c.period) : double(plan.samples) / clients;
  return MakeMixRule(c.options.alpha > 0 ? c.options.alpha : 1 / float(clients), typical);
}

constexpr MergeKind kMerges[] = {
    {.name = "gradient",
     .help = "gradients move the common weights",
     .gradients = true,
     .in_step = true,
     .stale = StaleKind::kScale,
     .scales = true,
     .waits = true,
     .make = MakeGradient,
     .rule = GradientRule},
    {.name = "difference",
     .help = "in step with a server: what workers did to their weights is added up",
     .gradients = false,
     .in_step = true,
     .stale = StaleKind::kDrop},
    {.name = "halve",
     .help = "worker and centre take the mean of the two",
     .gradients = false,
     .stale = StaleKind::kDrop,
     .answers = true,
     .make = MakeWeights,
     .rule = HalveRule},
    {.name = "average",
     .help = "the mean of the workers' weights, each by its samples",
     .gradients = false,
     .averages = true,
     .stale = StaleKind::kScale,
     .scales = true,
     .answers = true,
     .make = MakeWeights,
     .rule = AverageRule},
    {.name = "elastic",
     .help = "worker and centre pull at each other",
     .gradients = false,
     .stale = StaleKind::kDrop,
     .waits = true,
     .make = MakeElastic,
     .rule = ElasticRule},
};

}  // namespace

std::span<const MergeKind> MergeKinds() { return kMerges; }

const MergeKind& FindMerge(std::string_view name) {
  for (const MergeKind& kind : kMerges) {
    if (kind.name == name) return kind;
  }
  throw UsageError("strategy.merge: nothing is called {}", name);
}

const MergeKind& AverageMerge() {
  return *std::ranges::find_if(kMerges, [](const MergeKind& kind) { return kind.averages; });
}

}  // namespace trireme
