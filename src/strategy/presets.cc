#include "strategy/presets.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "flat/arithmetic.h"
#include "strategy/algorithm.h"
#include "strategy/centre_server.h"
#include "strategy/composed.h"
#include "strategy/inner_alone.h"
#include "strategy/inner_broker.h"
#include "strategy/inner_hogwild.h"
#include "strategy/inner_through_server.h"
#include "strategy/merge_elastic.h"

namespace trireme {
namespace {

Choices ChoicesOf(const StrategySetup& setup, World& world, int servers) {
  const int worker = world.rank() - servers;
  return {.plan = setup.plan,
          .worker = worker,
          .workers = world.size() - servers,
          .records = worker == 0};
}

// ---- allreduce

AllReduceNeeds NeedsOf(const StrategySetup& setup, World& world) {
  AllReduceNeeds needs{.options = setup.options, .deterministic = setup.deterministic};
  for (int w = 0; w < world.size(); ++w) {
    needs.shards.push_back(ShardsOf(setup.plan, w, world.size()));
  }
  needs.bytes =
      std::min(size_t(setup.options.bucket_mb * 1e6), setup.layout.summand * sizeof(float));
  return needs;
}

std::unique_ptr<Strategy> AllReduceWorker(const StrategySetup& setup, World& world) {
  Choices choices = ChoicesOf(setup, world, 0);
  if (world.size() == 1) {  // no communication, no threads
    choices.inner = std::make_unique<InnerAlone>(setup.deterministic ? setup.plan.shards : 1);
  } else {
    choices.inner = MakeAllReduce(NeedsOf(setup, world), world);
  }
  return std::make_unique<Composed>(std::move(choices));
}

// ---- sync-ps

std::unique_ptr<Strategy> ThroughServerWorker(const StrategySetup& setup, World& world) {
  using Merge = InnerThroughServer::Merge;
  Choices choices = ChoicesOf(setup, world, 1);
  choices.records = world.rank() == 0;  // the server has the optimizer
  std::vector<int> shards;
  for (int w = -1; w < choices.workers; ++w) {
    shards.push_back(ShardsOf(setup.plan, w, choices.workers));
  }
  const Merge merge = setup.options.merge == "difference" ? Merge::kDifference : Merge::kGradient;
  choices.inner =
      std::make_unique<InnerThroughServer>(world.group(), shards, setup.deterministic, merge);
  return std::make_unique<Composed>(std::move(choices));
}

// ---- bsp

std::unique_ptr<Strategy> BrokerWorker(const StrategySetup& setup, World& world) {
  Choices choices = ChoicesOf(setup, world, 0);
  const int shards = ShardsOf(setup.plan, world.rank(), world.size());
  TRIREME_ASSERT(setup.common);
  choices.inner = std::make_unique<InnerBroker>(static_cast<Broker&>(*setup.common), world.rank(),
                                                setup.deterministic ? std::max(1, shards) : 1);
  return std::make_unique<Composed>(std::move(choices));
}

std::unique_ptr<StrategyCommon> MakeBroker(int workers, double timeout_s) {
  return std::make_unique<Broker>(workers, timeout_s);
}

// ---- easgd

constexpr int kElasticServers = 1;

std::unique_ptr<Strategy> ElasticWorker(const StrategySetup& setup, World& world) {
  Choices choices = ChoicesOf(setup, world, kElasticServers);
  choices.inner = std::make_unique<InnerAlone>(1);
  choices.centre = std::make_unique<Client>(world.LinkTo(0));
  // The paper's rule: a moving rate of 0.9, shared among the workers.
  const float alpha = setup.options.alpha > 0 ? setup.options.alpha : 0.9f / float(choices.workers);
  choices.merge = std::make_unique<MergeElastic>(*choices.centre, alpha);
  choices.period = setup.options.period;
  return std::make_unique<Composed>(std::move(choices));
}

std::unique_ptr<Server> ElasticServer(const StrategySetup& setup, World& world,
                                      std::span<const float> state) {
  CentreServer::Setup server{.samples = setup.plan.samples, .positions = PositionsOf(setup.plan)};
  for (int r = kElasticServers; r < world.size(); ++r) server.clients.push_back(&world.LinkTo(r));
  server.lease = std::max<int64_t>(1, setup.plan.batch / int64_t(server.clients.size()));
  server.merge = [](Queue& queue, Slice pull, Slice centre) { flat::Add(queue, pull, centre); };
  return std::make_unique<CentreServer>(std::move(server), state);
}

// ---- hogwild

std::unique_ptr<Strategy> HogwildWorker(const StrategySetup& setup, World& world) {
  Choices choices = ChoicesOf(setup, world, 0);
  choices.inner = std::make_unique<InnerHogwild>(world.group());
  const int64_t lease = std::max<int64_t>(1, setup.plan.batch / choices.workers);
  choices.handout = std::make_unique<Handout>(world.group(), setup.plan, lease);
  return std::make_unique<Composed>(std::move(choices));
}

// ---- local-sgd

std::unique_ptr<Strategy> LocalSgdWorker(const StrategySetup& setup, World& world) {
  Choices choices = ChoicesOf(setup, world, 0);
  choices.inner = std::make_unique<InnerAlone>(1);
  choices.anchor = std::make_unique<GroupCentre>(
      world.group(), GroupCentre::Rates{.rate = float(setup.options.outer_lr),
                                        .momentum = float(setup.options.outer_momentum)});
  choices.period = setup.options.period;
  return std::make_unique<Composed>(std::move(choices));
}

constexpr StrategyPreset kPresets[] = {
    {.name = "allreduce",
     .help = "gradients are summed over all ranks in every step, bucket by bucket during backward "
             "(Horovod, DDP); with trainer.deterministic in shard order",
     .in_step = true,
     .servers = 0,
     .worker = AllReduceWorker,
     .server = nullptr},
    {.name = "sync-ps",
     .help = "rank 0 holds the weights and does not train: gradients, or weight differences "
             "(strategy.merge), travel to it in every step and new weights come back",
     .in_step = true,
     .servers = 1,
     .worker = ThroughServerWorker,
     .server = nullptr},
    {.name = "bsp",
     .help = "worker threads bring their gradients to a cyclic barrier, behind which an aggregator "
             "adds them up and moves the parent model (bulk-synchronous; the broker is no rank)",
     .in_step = true,
     .servers = 0,
     .worker = BrokerWorker,
     .server = nullptr,
     .common = MakeBroker},
    {.name = "easgd",
     .help = "workers train alone and every strategy.period steps worker and centre pull at each "
             "other; rank 0 holds the centre (Zhang, Choromanska, LeCun 2015)",
     .in_step = false,
     .servers = kElasticServers,
     .worker = ElasticWorker,
     .server = ElasticServer},
    {.name = "hogwild",
     .help = "workers read and write one set of weights without locks (Recht, Re, Wright, Niu "
             "2011): threads, or processes that share memory",
     .in_step = false,
     .servers = 0,
     .worker = HogwildWorker,
     .server = nullptr,
     .shares_memory = true},
    {.name = "local-sgd",
     .help = "workers train alone and every strategy.period steps all take the mean of their "
             "weights (federated averaging, McMahan et al. 2017; strategy.outer_momentum: SlowMo)",
     .in_step = true,
     .servers = 0,
     .worker = LocalSgdWorker,
     .server = nullptr,
     .local_steps = true},
};

}  // namespace

std::span<const StrategyPreset> StrategyPresets() { return kPresets; }

const StrategyPreset& FindPreset(std::string_view name) {
  std::vector<std::string> names;
  for (const StrategyPreset& preset : kPresets) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw UsageError("strategy.name: no strategy is called {}{}", name, DidYouMean(name, names));
}

int CheckStrategy(const StrategyOptions& options, int ranks, bool deterministic) {
  const StrategyPreset& preset = FindPreset(options.name);
  if (deterministic && !preset.in_step) {
    throw UsageError(
        "trainer.deterministic: the result of strategy {} depends on who comes first; use a "
        "strategy that advances in step (allreduce, sync-ps)",
        preset.name);
  }
  if (preset.local_steps && (deterministic || options.sync_batch_norm)) {
    throw UsageError(
        "strategy {}: workers step alone, so the result depends on their number "
        "(trainer.deterministic) and batch-norm sees one worker's samples "
        "(strategy.sync_batch_norm)",
        preset.name);
  }
  if (options.period == 0 && !preset.local_steps) {
    throw UsageError("strategy.period = 0, a meeting in each epoch, is of local-sgd; {} has none",
                     preset.name);
  }
  if (deterministic && options.algorithm != "auto" && options.algorithm != "shared" &&
      options.algorithm != "chain") {
    throw UsageError(
        "strategy.algorithm = \"{}\" adds in an order that depends on the number of ranks; "
        "trainer.deterministic wants auto, shared or chain",
        options.algorithm);
  }
  if (deterministic && options.wire != "f32") {
    throw UsageError(
        "strategy.wire = \"{}\" rounds at every hop, so the bits depend on the number of ranks; "
        "trainer.deterministic wants f32",
        options.wire);
  }
  if (options.sync_batch_norm && (deterministic || !preset.in_step)) {
    throw UsageError(
        "strategy.sync_batch_norm needs a strategy in step (allreduce, sync-ps, bsp) "
        "and adds in an order that trainer.deterministic does not allow");
  }
  if (deterministic && options.merge == "difference") {
    throw UsageError(
        "trainer.deterministic: weight differences agree with gradients to rounding only; use "
        "strategy.merge = \"gradient\"");
  }
  if (ranks <= preset.servers) {
    throw UsageError(
        "transport.ranks: strategy {} needs at least {} ranks ({} of them a server), got {}",
        preset.name, preset.servers + 1, preset.servers, ranks);
  }
  return ranks - preset.servers;
}

std::string ResolveAlgorithm(const StrategySetup& setup, World& world) {
  const StrategyPreset& preset = FindPreset(setup.options.name);
  if (preset.worker != AllReduceWorker) return setup.options.algorithm;
  return ChooseAlgorithm(NeedsOf(setup, world), world);
}

int RecordingRank(std::string_view strategy) {
  const StrategyPreset& preset = FindPreset(strategy);
  return preset.in_step ? 0 : preset.servers;
}

std::unique_ptr<Strategy> MakeWorker(const StrategySetup& setup, World& world) {
  CheckStrategy(setup.options, world.size(), setup.deterministic);
  return FindPreset(setup.options.name).worker(setup, world);
}

std::unique_ptr<Server> MakeServer(const StrategySetup& setup, World& world,
                                   std::span<const float> state) {
  CheckStrategy(setup.options, world.size(), setup.deterministic);
  const StrategyPreset& preset = FindPreset(setup.options.name);
  TRIREME_ASSERT(preset.server && state.size() == setup.layout.state);
  return preset.server(setup, world, state);
}

void Describe(OptionTable<StrategyOptions>& t) {
  std::vector<std::string> names;
  for (const StrategyPreset& preset : kPresets) names.push_back(preset.name);
  t.Add("name", &StrategyOptions::name, OneOf(names), "how replicas agree");
  t.Add("algorithm", &StrategyOptions::algorithm, OneOf(AlgorithmNames()),
        "allreduce: how gradients are summed; shared: where they lie, in memory that all ranks "
        "address; auto: shared where that is possible, else by a measured model of the links");
  t.Add("wire", &StrategyOptions::wire, OneOf({"f32", "bf16"}),
        "allreduce: how gradients travel; bf16 halves the bytes and rounds every partial sum");
  t.Add("merge", &StrategyOptions::merge, OneOf({"gradient", "difference"}),
        "sync-ps: what travels to the server; differences need SGD without momentum, weight decay "
        "and clipping");
  t.Add("sync_batch_norm", &StrategyOptions::sync_batch_norm, Any(),
        "batch-norm over the samples of all workers, not of each shard: two small sums per layer; "
        "one shard per worker");
  t.Add("bucket_mb", &StrategyOptions::bucket_mb, Above(0) && AtMost(1024),
        "allreduce: megabytes of gradients that are summed at a time while backward goes on");
  t.Add("period", &StrategyOptions::period, AtLeast(0),
        "easgd, local-sgd: local steps between meetings with the centre; 0 (local-sgd): one at the "
        "end of each epoch");
  t.Add("outer_lr", &StrategyOptions::outer_lr, Above(0) && AtMost(10),
        "local-sgd: how far the anchor goes towards the workers' mean at a meeting");
  t.Add("outer_momentum", &StrategyOptions::outer_momentum, AtLeast(0) && Below(1),
        "local-sgd: share of the anchor's velocity kept from meeting to meeting");
  t.Add("alpha", &StrategyOptions::alpha, Between(0, 1),
        "easgd: share of the distance given up at a meeting; 0: 0.9 / workers");
}

}  // namespace trireme
