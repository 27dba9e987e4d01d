#include "strategy/inner/kinds.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/error.h"
#include "strategy/inner/algorithm.h"
#include "strategy/inner/all_reduce.h"
#include "strategy/inner/alone.h"
#include "strategy/inner/broker_worker.h"
#include "strategy/inner/hogwild.h"
#include "strategy/inner/strategy_common.h"
#include "strategy/inner/through_server.h"
#include "strategy/step/split.h"
#include "strategy/step/work.h"

namespace trireme {
namespace {

std::vector<int> ShardsOfRanks(const InnerNeeds& needs) {
  std::vector<int> shards;
  const int workers = needs.ranks - needs.servers;
  for (int r = 0; r < needs.ranks; ++r) {
    shards.push_back(ShardsOf(needs.plan, r < needs.servers ? -1 : r - needs.servers, workers));
  }
  return shards;
}

// For which a rank needs place.
int SummandsOf(const InnerNeeds& needs, int shards) {
  if (!needs.deterministic || shards == 0) return 1;
  return needs.balanced ? MostShards(needs.plan.shards, needs.ranks - needs.servers) : shards;
}

AllReduceNeeds AllReduceNeedsOf(const InnerNeeds& needs, const Group& group) {
  const std::vector<int> shards = ShardsOfRanks(needs);
  return {.algorithm = needs.algorithm,
          .wire = needs.wire,
          .deterministic = needs.deterministic,
          .shards = shards,
          .summands = SummandsOf(needs, shards[size_t(group.rank())]),
          .most_summands = SummandsOf(needs, *std::ranges::max_element(shards)),
          .bytes = needs.bucket_bytes,
          .devices = needs.devices,
          .log = needs.log};
}

std::unique_ptr<Inner> MakeAlone(const InnerNeeds& needs, Group*) {
  const bool all_shards = needs.deterministic && needs.in_step;
  return std::make_unique<InnerAlone>(all_shards ? needs.plan.shards : 1);
}

// Of all, or of a group below a server or an average.
std::unique_ptr<Inner> MakeAllReduceOf(const InnerNeeds& needs, Group* group) {
  if (group->size() == 1 && !NeedsDevices(needs.algorithm)) {
    return MakeAlone(needs, group);  // no communication, no threads
  }
  return MakeAllReduce(AllReduceNeedsOf(needs, *group), *group);
}

std::string AlgorithmOf(const InnerNeeds& needs, Group& group) {
  return ChooseAlgorithm(AllReduceNeedsOf(needs, group), group);
}

std::unique_ptr<Inner> MakeThroughServer(const InnerNeeds& needs, Group* group) {
  using Sends = InnerThroughServer::Sends;
  using Route = InnerThroughServer::Route;
  const std::vector<int> shards = ShardsOfRanks(needs);
  return std::make_unique<InnerThroughServer>(
      *group, shards, needs.deterministic, SummandsOf(needs, shards[size_t(group->rank())]),
      InnerThroughServer::Ways{.sends = needs.differences ? Sends::kDifferences : Sends::kGradients,
                               .route = needs.star ? Route::kStar : Route::kChain,
                               .overlap = needs.overlap});
}

std::unique_ptr<Inner> MakeBrokerWorker(const InnerNeeds& needs, Group* group) {
  TRIREME_ASSERT(needs.common);
  const int most = MostEqualShards(needs.plan.shards, group->size());  // in some step
  return std::make_unique<InnerBroker>(static_cast<Broker&>(*needs.common), group->rank(),
                                       SummandsOf(needs, most));
}

std::unique_ptr<StrategyCommon> MakeBroker(int workers, double timeout_s) {
  return std::make_unique<Broker>(workers, timeout_s);
}

std::unique_ptr<Inner> MakeHogwild(const InnerNeeds&, Group* group) {
  return std::make_unique<InnerHogwild>(*group);
}

constexpr InnerKind kInners[] = {
    {.name = "alone",
     .help = "each worker steps on its own",
     .in_step = false,
     .alone = true,
     .make = MakeAlone},
    {.name = "allreduce",
     .help = "gradients are summed over all workers, or over each group (strategy.groups)",
     .in_step = true,
     .groups = true,
     .make = MakeAllReduceOf,
     .algorithm = AlgorithmOf},
    {.name = "hogwild",
     .help = "workers read and write one set of weights without locks",
     .in_step = false,
     .shares_memory = true,
     .host_memory = true,
     .groups = true,
     .make = MakeHogwild},
    {.name = "server",
     .help = "rank 0 adds up gradients or differences and sends the new weights back",
     .in_step = true,
     .servers = 1,
     .differences = true,
     .make = MakeThroughServer},
    {.name = "broker",
     .help = "threads bring gradients to a barrier, after which one of them adds them up",
     .in_step = true,
     .one_process = true,
     .one_source = true,
     .host_memory = true,
     .make = MakeBrokerWorker,
     .common = MakeBroker},
};

}  // namespace

std::span<const InnerKind> InnerKinds() { return kInners; }

const InnerKind& FindInner(std::string_view name) {
  for (const InnerKind& kind : kInners) {
    if (kind.name == name) return kind;
  }
  throw UsageError("strategy.inner = \"{}\" is unknown", name);
}

}  // namespace trireme
