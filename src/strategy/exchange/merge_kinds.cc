#include "strategy/exchange/merge_kinds.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "strategy/exchange/merge_elastic.h"
#include "strategy/exchange/merge_gradient.h"
#include "strategy/exchange/merge_moves.h"
#include "strategy/exchange/merge_neighbours.h"
#include "strategy/exchange/merge_weights.h"
#include "strategy/server/rule.h"

namespace trireme {
namespace {

std::unique_ptr<Merge> MakeGradient(MergeNeeds needs) {
  return std::make_unique<MergeGradient>(needs.centre,
                                         MergeGradient::Pace{.push = needs.push,
                                                             .fetch = needs.fetch,
                                                             .asks = needs.asks,
                                                             .waits = needs.waits,
                                                             .clock = needs.clock},
                                         std::move(needs.shared));
}

std::unique_ptr<ServerRule> GradientRule(const RuleNeeds& needs) {
  TRIREME_ASSERT(needs.optimizer && needs.schedule);
  return MakeUpdateRule(*needs.optimizer, *needs.schedule, needs.layout, needs.device);
}

std::unique_ptr<Merge> MakeElastic(MergeNeeds needs) {
  return std::make_unique<MergeElastic>(needs.centre, needs.alpha, needs.waits);
}

std::unique_ptr<ServerRule> ElasticRule(const RuleNeeds&) { return MakeAddRule(); }

std::unique_ptr<Merge> MakeInboxes(MergeNeeds needs, MergeNeighbours::Mixes mixes) {
  TRIREME_ASSERT(needs.inboxes);
  return std::make_unique<MergeNeighbours>(needs.centre, std::move(needs.inboxes), mixes,
                                           needs.alpha, needs.clients);
}
std::unique_ptr<Merge> MakeGossip(MergeNeeds needs) {
  return MakeInboxes(std::move(needs), MergeNeighbours::Mixes::kAll);
}
std::unique_ptr<Merge> MakeNeighbours(MergeNeeds needs) {
  return MakeInboxes(std::move(needs), MergeNeighbours::Mixes::kNearer);
}

std::unique_ptr<Merge> MakeMoves(MergeNeeds needs) {
  return std::make_unique<MergeMoves>(needs.centre, std::move(needs.shared));
}

std::unique_ptr<Merge> MakeWeights(MergeNeeds needs) {
  return std::make_unique<MergeWeights>(needs.centre, needs.rounds);
}

std::unique_ptr<ServerRule> HalveRule(const RuleNeeds&) { return MakeMixRule(0.5f, 0); }

std::unique_ptr<ServerRule> AverageRule(const RuleNeeds& needs) {
  if (needs.rounds) {
    return MakeRoundRule(needs.outer_momentum, needs.layout, needs.device);
  }
  const float share = needs.alpha > 0 ? needs.alpha : 1 / float(std::max(1, needs.clients));
  return MakeMixRule(share, needs.samples);
}

constexpr MergeKind kMerges[] = {
    {.name = "gradient",
     .help = "gradients move the common weights",
     .gradients = true,
     .in_step = true,
     .stale = StaleKind::kScale,
     .scales = true,
     .waits = true,
     .own_alone = true,
     .make = MakeGradient,
     .rule = GradientRule},
    {.name = "difference",
     .help = "in step with a server: the changes that workers made to their weights are added up",
     .gradients = false,
     .in_step = true,
     .stale = StaleKind::kDrop},
    {.name = "halve",
     .help = "worker and centre take the mean of the two",
     .gradients = false,
     .stale = StaleKind::kDrop,
     .takes_weights = true,
     .make = MakeWeights,
     .rule = HalveRule},
    {.name = "average",
     .help = "the mean of the workers' weights, weighted by their samples",
     .gradients = false,
     .averages = true,
     .stale = StaleKind::kScale,
     .scales = true,
     .takes_weights = true,
     .make = MakeWeights,
     .rule = AverageRule},
    {.name = "elastic",
     .help = "worker and centre pull each other closer",
     .gradients = false,
     .stale = StaleKind::kDrop,
     .waits = true,
     .adds = true,
     .make = MakeElastic,
     .rule = ElasticRule},
    {.name = "gossip",
     .help =
         "workers write their weights into inboxes of each other and mix in what they find; the "
         "centre is the mean",
     .gradients = false,
     .stale = StaleKind::kDrop,
     .inboxes = true,
     .adds = true,
     .only_memory = true,
     .make = MakeGossip,
     .rule = ElasticRule},
    {.name = "neighbours",
     .help = "as gossip, but only what a worker's own steps lead nearer to is mixed in",
     .gradients = false,
     .stale = StaleKind::kDrop,
     .inboxes = true,
     .adds = true,
     .only_memory = true,
     .make = MakeNeighbours,
     .rule = ElasticRule},
    {.name = "moves",
     .help = "what a worker's own optimizer does to its weights is added to the common ones",
     .gradients = false,
     .stale = StaleKind::kDrop,
     .own_alone = true,
     .adds = true,
     .only_memory = true,
     .make = MakeMoves,
     .rule = ElasticRule},
};

}  // namespace

std::span<const MergeKind> MergeKinds() { return kMerges; }

const MergeKind& FindMerge(std::string_view name) {
  for (const MergeKind& kind : kMerges) {
    if (kind.name == name) return kind;
  }
  throw UsageError("strategy.merge = \"{}\" is unknown", name);
}

const MergeKind& AverageMerge() {
  return *std::ranges::find_if(kMerges, [](const MergeKind& kind) { return kind.averages; });
}

}  // namespace trireme
