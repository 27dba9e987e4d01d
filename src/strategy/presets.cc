#include "strategy/presets.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "strategy/algorithm.h"
#include "strategy/composed.h"
#include "strategy/inner_alone.h"
#include "strategy/inner_broker.h"
#include "strategy/inner_hogwild.h"
#include "strategy/inner_through_server.h"

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

// ---- a centre at a server

CentreChoices CentreOf(const StrategySetup& setup) {
  return ResolveCentre(FindPreset(setup.options.name).choices, setup.options);
}

std::unique_ptr<Strategy> CentreWorker(const StrategySetup& setup, World& world) {
  return MakeCentreWorker(setup, world, CentreOf(setup));
}

std::unique_ptr<Server> ServerOfCentre(const StrategySetup& setup, World& world,
                                       std::span<const float> state) {
  return MakeCentreServer(setup, world, CentreOf(setup), state);
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

constexpr int kLocalSteps = 10;  // between meetings

std::unique_ptr<Strategy> LocalSgdWorker(const StrategySetup& setup, World& world) {
  Choices choices = ChoicesOf(setup, world, 0);
  choices.inner = std::make_unique<InnerAlone>(1);
  choices.anchor = std::make_unique<GroupCentre>(
      world.group(),
      GroupCentre::Rates{.rate = setup.options.outer_lr, .momentum = setup.options.outer_momentum});
  choices.period = setup.options.period < 0 ? kLocalSteps : setup.options.period;
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
    {.name = "async-ps",
     .help =
         "workers train alone and meet the server when they like: weights are averaged in pairs "
         "(strategy.merge halve, average), or gradients move the centre, which the server "
         "broadcasts; nobody waits for another",
     .in_step = false,
     .servers = 1,
     .worker = CentreWorker,
     .server = ServerOfCentre,
     .choices = {.merge = "halve", .broadcasts = true}},
    {.name = "downpour",
     .help = "workers push the sum of their gradients every strategy.push steps and fetch weights "
             "every strategy.fetch steps; the optimizer is at the server (Dean et al. 2012)",
     .in_step = false,
     .servers = 1,
     .worker = CentreWorker,
     .server = ServerOfCentre,
     .choices = {.merge = "gradient", .push = 2, .fetch = 2}},
    {.name = "easgd",
     .help = "workers train alone and every strategy.period steps worker and centre pull at each "
             "other; rank 0 holds the centre (Zhang, Choromanska, LeCun 2015)",
     .in_step = false,
     .servers = 1,
     .worker = CentreWorker,
     .server = ServerOfCentre,
     .choices = {.merge = "elastic"}},
    {.name = "ssp",
     .help =
         "workers take shards of steps and use weights that are at most strategy.staleness steps "
         "behind; with 0 it is allreduce through a server (Ho et al. 2013)",
     .in_step = false,
     .servers = 1,
     .worker = CentreWorker,
     .server = ServerOfCentre,
     .choices = {.merge = "gradient", .pace = "clock", .staleness = 3}},
    {.name = "mpi-ps",
     .help = "workers all-reduce inside each of strategy.groups groups, and every strategy.period "
             "steps the groups meet the server (Mamidala et al. 2018)",
     .in_step = false,
     .servers = 1,
     .worker = CentreWorker,
     .server = ServerOfCentre,
     .choices = {.merge = "elastic", .inner = "allreduce"}},
    {.name = "dogwild",
     .help =
         "workers of each of strategy.groups groups share weights without locks, as in hogwild; "
         "gradients go to the server, and its weights come in now and then (Noel, Osindero "
         "2014)",
     .in_step = false,
     .servers = 1,
     .worker = CentreWorker,
     .server = ServerOfCentre,
     .choices = {.merge = "gradient", .push = 1, .fetch = 1, .inner = "hogwild"}},
    {.name = "federated",
     .help = "workers train alone for strategy.period steps, then the server averages the weights "
             "of all who are here, by their samples (McMahan et al. 2017)",
     .in_step = false,
     .servers = 1,
     .worker = CentreWorker,
     .server = ServerOfCentre,
     .choices = {.merge = "average", .pace = "round"}},
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

namespace {

// The first ranks, which do not train.
int ServersOf(const StrategyPreset& preset, const StrategyOptions& options) {
  return preset.server ? options.servers : preset.servers;
}

// Clocks without staleness add in shard order.
bool EqualBits(const StrategyPreset& preset, const StrategyOptions& options) {
  if (!preset.server) return false;
  const CentreChoices choices = ResolveCentre(preset.choices, options);
  return choices.pace == "clock" && choices.staleness == 0;
}

// The four choices of a recipe against the row that it names.
void CheckChoices(const StrategyPreset& preset, const StrategyOptions& options) {
  if (options.centre == "memory") {
    throw UsageError(
        "strategy.centre = \"memory\": there is no remote memory yet; use a server (easgd)");
  }
  if (preset.server) {
    if (options.centre != "auto" && options.centre != "server") {
      throw UsageError("strategy.centre = \"{}\": the centre of {} is at a server", options.centre,
                       preset.name);
    }
    if (options.pace == "in-step") {
      throw UsageError(
          "strategy.pace = \"in-step\" with a server is strategy sync-ps, which needs no leases");
    }
    ResolveCentre(preset.choices, options);
    return;
  }
  if (options.servers > 1) {
    throw UsageError("strategy.servers = {}: {} has no centre at servers (downpour has)",
                     options.servers, preset.name);
  }
  const std::string_view own = preset.local_steps ? "group" : "none";
  if (options.centre != "auto" && options.centre != own) {
    throw UsageError(
        "strategy.centre = \"{}\": the centre of {} is \"{}\"; with a server there are async-ps, "
        "downpour, easgd, ssp, mpi-ps, dogwild and federated",
        options.centre, preset.name, own);
  }
  const std::string_view pace = preset.in_step ? "in-step" : "free";
  if (options.pace != "auto" && options.pace != pace) {
    throw UsageError("strategy.pace = \"{}\": {}", options.pace,
                     preset.in_step ? fmt::format("the ranks of {} advance in step", preset.name)
                                    : fmt::format("the ranks of {} are free", preset.name));
  }
  if (options.inner != "auto") {
    throw UsageError("strategy.inner = \"{}\": the inner choice of {} is fixed", options.inner,
                     preset.name);
  }
  const bool through_server = preset.worker == ThroughServerWorker;
  const bool fits = options.merge == "auto" || options.merge == "gradient" ||
                    (options.merge == "difference" && through_server);
  if (!fits) {
    throw UsageError("strategy.merge = \"{}\": {} adds up {}", options.merge, preset.name,
                     through_server ? "gradients or differences" : "gradients");
  }
}

}  // namespace

bool LeasesShards(const StrategyOptions& options) {
  const StrategyPreset& preset = FindPreset(options.name);
  return preset.server && ResolveCentre(preset.choices, options).pace == "clock";
}

std::vector<int> TeamsOf(const StrategyOptions& options, int ranks) {
  const StrategyPreset& preset = FindPreset(options.name);
  if (!preset.server) return {};
  const CentreChoices choices = ResolveCentre(preset.choices, options);
  if (!WorksInTeams(choices)) return {};
  std::vector<int> teams(size_t(ranks), -1);
  const int workers = ranks - choices.servers;
  for (int w = 0; w < workers; ++w) {
    teams[size_t(choices.servers + w)] = GroupOf(w, workers, choices.groups);
  }
  return teams;
}

bool TeamsShareMemory(const StrategyOptions& options) {
  const StrategyPreset& preset = FindPreset(options.name);
  return preset.server && ResolveCentre(preset.choices, options).inner == "hogwild";
}

int FreeClients(const StrategyOptions& options, int workers) {
  const StrategyPreset& preset = FindPreset(options.name);
  return preset.server ? ClientsOf(ResolveCentre(preset.choices, options), workers) : workers;
}

bool MayHaveOwnData(const StrategyOptions& options) {
  const StrategyPreset& preset = FindPreset(options.name);
  return preset.server && ResolveCentre(preset.choices, options).pace == "round";
}

int CheckStrategy(const StrategyOptions& options, int ranks, bool deterministic) {
  const StrategyPreset& preset = FindPreset(options.name);
  CheckChoices(preset, options);
  if (deterministic && !preset.in_step && !EqualBits(preset, options)) {
    throw UsageError(
        "trainer.deterministic: the result of strategy {} depends on who comes first; use a "
        "strategy that advances in step (allreduce, sync-ps) or ssp with strategy.staleness = 0",
        preset.name);
  }
  if (preset.local_steps && (deterministic || options.sync_batch_norm)) {
    throw UsageError(
        "strategy {}: workers step alone, so the result depends on their number "
        "(trainer.deterministic) and batch-norm sees one worker's samples "
        "(strategy.sync_batch_norm)",
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
  const int servers = ServersOf(preset, options);
  if (ranks <= servers) {
    throw UsageError("transport.ranks: strategy {} needs at least {} ranks ({} of them {}), got {}",
                     preset.name, servers + 1, servers, servers > 1 ? "servers" : "a server",
                     ranks);
  }
  if (preset.server) {
    const CentreChoices choices = ResolveCentre(preset.choices, options);
    if (WorksInTeams(choices) && choices.groups > ranks - servers) {
      throw UsageError("strategy.groups = {} for {} (transport.ranks)", choices.groups,
                       Counted(ranks - servers, "worker"));
    }
  }
  return ranks - servers;
}

std::string ResolveAlgorithm(const StrategySetup& setup, World& world) {
  const StrategyPreset& preset = FindPreset(setup.options.name);
  if (preset.worker != AllReduceWorker) return setup.options.algorithm;
  return ChooseAlgorithm(NeedsOf(setup, world), world);
}

int RecordingRank(std::string_view) { return 0; }

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
  t.Add("inner", &StrategyOptions::inner, OneOf({"auto", "alone", "allreduce", "hogwild"}),
        "how replicas advance inside a step; auto: as the strategy has it, and so for the next "
        "three");
  t.Add("centre", &StrategyOptions::centre, OneOf({"auto", "none", "group", "server", "memory"}),
        "where common weights live besides the replicas'");
  t.Add("merge", &StrategyOptions::merge,
        OneOf({"auto", "gradient", "difference", "halve", "average", "elastic"}),
        "what a worker and the centre (or sync-ps' server) do to each other; differences need SGD "
        "without momentum, weight decay and clipping");
  t.Add("pace", &StrategyOptions::pace, OneOf({"auto", "in-step", "free", "clock", "round"}),
        "with a centre: when the server applies what workers push: at once (free), when a step's "
        "shards are complete (clock), when everybody has pushed (round)");
  t.Add("sync_batch_norm", &StrategyOptions::sync_batch_norm, Any(),
        "batch-norm over the samples of all workers, not of each shard: two small sums per layer; "
        "one shard per worker");
  t.Add("bucket_mb", &StrategyOptions::bucket_mb, Above(0) && AtMost(1024),
        "allreduce: megabytes of gradients that are summed at a time while backward goes on");
  t.Add("period", &StrategyOptions::period, AtLeast(-1),
        "merges of weights: local steps between meetings with the centre; 0: once an epoch; -1: as "
        "the strategy has it (10)");
  t.Add("outer_lr", &StrategyOptions::outer_lr, Above(0) && AtMost(10),
        "local-sgd: how far the anchor goes towards the workers' mean at a meeting");
  t.Add("servers", &StrategyOptions::servers, AtLeast(1) && AtMost(64),
        "the first ranks, which hold the centre, each a portion of the parameters; more than one "
        "where gradients are applied as they arrive (downpour)");
  t.Add("groups", &StrategyOptions::groups, AtLeast(0),
        "inner allreduce or hogwild with a server: groups of workers that sum their gradients or "
        "share weights; 0: 2");
  t.Add("push", &StrategyOptions::push, AtLeast(0),
        "merge gradient: steps between pushes of the gradients' sum; 0: as the strategy has it");
  t.Add("fetch", &StrategyOptions::fetch, AtLeast(0),
        "merge gradient: steps after which newer weights are taken; 0: as the strategy has it");
  t.Add(
      "alpha", &StrategyOptions::alpha, Between(0, 1),
      "elastic: share of the distance given up at a meeting; 0: 0.9 / clients. average: weight of "
      "a client that did its share; 0: 1 / workers");
  t.Add("outer_momentum", &StrategyOptions::outer_momentum, AtLeast(0) && Below(1),
        "local-sgd, federated: share of the centre's velocity kept from meeting to meeting");
  t.Add("staleness", &StrategyOptions::staleness, AtLeast(-1),
        "how many updates (pace clock: steps) the weights of an update may be behind; -1: as the "
        "strategy has it (ssp: 3), else any");
  t.Add("stale", &StrategyOptions::stale, OneOf({"auto", "wait", "scale", "drop"}),
        "what becomes of an update beyond strategy.staleness: nobody gets so far (wait), it counts "
        "less, or its positions are leased again");
  t.Add(
      "snapshot_s", &StrategyOptions::snapshot_s, Above(0),
      "with a server: seconds between its snapshots, to which centre and leases return if it dies");
}

}  // namespace trireme
