#include "strategy/inner_kinds.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/error.h"
#include "strategy/algorithm.h"
#include "strategy/common.h"
#include "strategy/inner_all_reduce.h"
#include "strategy/inner_alone.h"
#include "strategy/inner_broker.h"
#include "strategy/inner_hogwild.h"
#include "strategy/inner_through_server.h"
#include "strategy/make.h"
#include "strategy/shared_weights.h"

namespace trireme {
namespace {

std::vector<int> ShardsOfRanks(const StrategySetup& setup) {
  const StrategyChoice& c = setup.choice;
  std::vector<int> shards;
  for (int r = 0; r < c.ranks; ++r) {
    shards.push_back(ShardsOf(setup.plan, r < c.servers ? -1 : r - c.servers, c.workers()));
  }
  return shards;
}

AllReduceNeeds NeedsOf(const StrategySetup& setup) {
  const StrategyOptions& options = setup.choice.options;
  return {.options = options,
          .deterministic = setup.choice.deterministic,
          .shards = ShardsOfRanks(setup),
          .bytes = std::min(size_t(options.bucket_mb * 1e6), setup.layout.summand * sizeof(float))};
}

std::unique_ptr<Inner> MakeAlone(const StrategySetup& setup, Group*) {
  const bool all_shards = setup.choice.deterministic && setup.choice.in_step();
  return std::make_unique<InnerAlone>(all_shards ? setup.plan.shards : 1);
}

// Of all, or of a group below a server or an average.
std::unique_ptr<Inner> MakeAllReduceOf(const StrategySetup& setup, Group* group) {
  if (group->size() == 1) return MakeAlone(setup, group);  // no communication, no threads
  if (setup.choice.has_server()) {
    return std::make_unique<InnerAllReduce>(*group, FindAllReduce("ring"), WireType::kF32);
  }
  return MakeAllReduce(NeedsOf(setup), *group);
}

std::string AlgorithmOf(const StrategySetup& setup, Group& group) {
  if (setup.choice.has_server()) return setup.choice.options.algorithm;
  return ChooseAlgorithm(NeedsOf(setup), group);
}

std::unique_ptr<Inner> MakeThroughServer(const StrategySetup& setup, Group* group) {
  using Merge = InnerThroughServer::Merge;
  return std::make_unique<InnerThroughServer>(
      *group, ShardsOfRanks(setup), setup.choice.deterministic,
      setup.choice.merge->gradients ? Merge::kGradient : Merge::kDifference);
}

std::unique_ptr<Inner> MakeBrokerWorker(const StrategySetup& setup, Group* group) {
  TRIREME_ASSERT(setup.common);
  const int shards = ShardsOf(setup.plan, group->rank(), group->size());
  return std::make_unique<InnerBroker>(static_cast<Broker&>(*setup.common), group->rank(),
                                       setup.choice.deterministic ? std::max(1, shards) : 1);
}

std::unique_ptr<StrategyCommon> MakeBroker(int workers, double timeout_s) {
  return std::make_unique<Broker>(workers, timeout_s);
}

std::unique_ptr<Inner> MakeHogwild(const StrategySetup&, Group* group) {
  return std::make_unique<InnerHogwild>(*group);
}

std::unique_ptr<SharedWeights> ShareHogwild(Group& group, Inner& inner) {
  return std::make_unique<SharedWeights>(group, static_cast<InnerHogwild&>(inner));
}

constexpr InnerKind kInners[] = {
    {.name = "alone",
     .help = "each worker steps by itself",
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
     .groups = true,
     .make = MakeHogwild,
     .shared = ShareHogwild},
    {.name = "server",
     .help = "rank 0 adds up gradients or differences and sends the new weights back",
     .in_step = true,
     .servers = 1,
     .differences = true,
     .make = MakeThroughServer},
    {.name = "broker",
     .help = "threads bring gradients to a barrier, behind which one adds them up",
     .in_step = true,
     .one_process = true,
     .make = MakeBrokerWorker,
     .common = MakeBroker},
};

}  // namespace

std::span<const InnerKind> InnerKinds() { return kInners; }

const InnerKind& FindInner(std::string_view name) {
  for (const InnerKind& kind : kInners) {
    if (kind.name == name) return kind;
  }
  throw UsageError("strategy.inner: nothing is called {}", name);
}

}  // namespace trireme
