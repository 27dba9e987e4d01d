#include "strategy/centre_choices.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "strategy/centre_server.h"
#include "strategy/composed.h"
#include "strategy/inner_all_reduce.h"
#include "strategy/inner_alone.h"
#include "strategy/inner_hogwild.h"
#include "strategy/merge_elastic.h"
#include "strategy/merge_gradient.h"
#include "strategy/merge_weights.h"
#include "strategy/portion_server.h"
#include "strategy/presets.h"

namespace trireme {
namespace {

// Staleness at a free pace is bounded by letting workers wait.
bool Waits(const CentreChoices& c) { return c.pace == "free" && c.stale == "wait"; }

// Combinations that cannot mean anything, and why.
void CheckCentre(const CentreChoices& c) {
  const bool gradient = c.merge == "gradient";
  if (c.merge == "difference") {
    throw UsageError(
        "strategy.merge = \"difference\" belongs to sync-ps, where all start from the same "
        "weights; "
        "with a free pace use elastic, average or gradient");
  }
  if (c.pace == "clock" && !gradient) {
    throw UsageError(
        "strategy.pace = \"clock\" adds up the gradients of a step's shards, so strategy.merge "
        "must "
        "be gradient, not {}",
        c.merge);
  }
  if (c.pace == "clock" && c.inner != "alone") {
    throw UsageError(
        "strategy.pace = \"clock\" hands out single shards to workers that have weights of their "
        "own "
        "(strategy.inner = \"alone\")");
  }
  if (c.inner == "hogwild" && c.merge != "gradient") {
    throw UsageError(
        "strategy.inner = \"hogwild\": workers that share weights send gradients to the centre "
        "(strategy.merge = \"gradient\", as dogwild); with merge {} each would send what others "
        "did, too",
        c.merge);
  }
  if (c.pace == "clock" && (c.push != 1 || c.fetch != 1)) {
    throw UsageError(
        "strategy.pace = \"clock\": every shard's gradient is pushed by itself and weights are "
        "fetched when they are too old; strategy.push and strategy.fetch must be 1");
  }
  if (c.pace == "round" && c.merge != "average") {
    throw UsageError(
        "strategy.pace = \"round\" averages the weights of all clients, so strategy.merge must be "
        "average, not {}",
        c.merge);
  }
  if (Waits(c) && c.staleness < 0) {
    throw UsageError("strategy.stale = \"wait\" needs a bound to wait for (strategy.staleness)");
  }
  if (Waits(c) && !gradient && c.merge != "elastic") {
    throw UsageError(
        "strategy.stale = \"wait\": with strategy.merge = \"{}\" a worker's weights are its own "
        "from one meeting to the next, and all others would stand still meanwhile; use drop, or "
        "gradient or elastic",
        c.merge);
  }
  if (Waits(c) && c.inner == "hogwild") {
    throw UsageError(
        "strategy.stale = \"wait\": the workers of a group share their weights and none of them "
        "waits (inner = \"hogwild\"); use scale or drop");
  }
  if (Waits(c) && gradient && c.fetch != c.push) {
    throw UsageError(
        "strategy.stale = \"wait\": what is pushed is computed from one version of the weights, so "
        "they are fetched once for each push; strategy.fetch must be {} (strategy.push), not {}",
        c.push, c.fetch);
  }
  if (c.pace != "free" && c.stale != "wait") {
    throw UsageError(
        "strategy.pace = \"{}\" waits for what would be too stale, so strategy.stale "
        "cannot be {}",
        c.pace, c.stale);
  }
  if (c.stale == "scale" && c.staleness >= 0 && !gradient && c.merge != "average") {
    throw UsageError(
        "strategy.stale = \"scale\" shrinks a stale gradient or average; with strategy.merge = "
        "\"{}\" use drop",
        c.merge);
  }
}

// Several servers agree on nothing but an order: what one does to its portion must not depend on
// the others'.
void CheckServers(const CentreChoices& c) {
  if (c.servers == 1) return;
  if (c.merge != "gradient" || c.pace != "free") {
    throw UsageError(
        "strategy.servers = {}: a centre lies on several servers where gradients are applied as "
        "they arrive (strategy.merge = \"gradient\", pace = \"free\": downpour), not with merge "
        "{} and pace {}, where workers or clocks need the whole of it at one moment",
        c.servers, c.merge, c.pace);
  }
  if (Waits(c)) {
    throw UsageError(
        "strategy.servers = {}: which push may count, the first server would have to say before "
        "the others have their portions; strategy.stale is scale or drop, not wait",
        c.servers);
  }
  if (c.broadcasts) {
    throw UsageError(
        "strategy.servers = {}: this strategy's server broadcasts the whole centre; downpour "
        "fetches it, from several servers too",
        c.servers);
  }
}

// The first worker of a group.
int LeaderOf(int group, int workers, int groups) { return int(int64_t(workers) * group / groups); }

bool Grouped(const CentreChoices& c) { return c.inner == "allreduce"; }

bool Clocked(const CentreChoices& c) { return c.pace == "clock"; }

int PeriodOf(const CentreChoices& c) { return c.merge == "gradient" ? c.push : c.period; }

std::unique_ptr<Merge> MakeMerge(const CentreChoices& c, const StrategyOptions& options,
                                 Client& client, std::unique_ptr<SharedWeights> shared) {
  if (c.merge == "elastic") return std::make_unique<MergeElastic>(client, options.alpha, Waits(c));
  if (c.merge == "gradient") {
    return std::make_unique<MergeGradient>(
        client,
        MergeGradient::Pace{.push = c.push,
                            .fetch = c.fetch,
                            .asks = !c.broadcasts,
                            .waits = Waits(c),
                            .clock = Clocked(c) ? c.staleness : -1},
        std::move(shared));
  }
  return std::make_unique<MergeWeights>(client, c.pace == "round");
}

int64_t LeaseOf(const Plan& plan, int workers) {
  return std::max<int64_t>(1, plan.batch / std::max(1, workers));
}

std::unique_ptr<CentreRule> MakeRule(const CentreChoices& c, const StrategySetup& setup,
                                     const Layout& layout, int workers, Device& device) {
  const StrategyOptions& options = setup.options;
  if (c.merge == "gradient") {
    TRIREME_ASSERT(setup.optimizer && setup.schedule);
    return MakeUpdateRule(*setup.optimizer, *setup.schedule, layout, device);
  }
  if (c.merge == "elastic") return MakeAddRule();
  if (c.pace == "round") {
    return MakeRoundRule(options.outer_momentum, setup.layout.state, device);
  }
  if (c.merge == "halve") return MakeMixRule(0.5f, 0);
  const double typical = c.period ? double(LeaseOf(setup.plan, workers) * c.period)
                                  : double(setup.plan.samples) / std::max(1, workers);
  return MakeMixRule(options.alpha > 0 ? options.alpha : 1 / float(std::max(1, workers)), typical);
}

}  // namespace

int GroupOf(int worker, int workers, int groups) {
  for (int g = groups - 1; g > 0; --g) {
    if (worker >= LeaderOf(g, workers, groups)) return g;
  }
  return 0;
}

bool WorksInTeams(const CentreChoices& c) { return c.inner != "alone"; }

int ClientsOf(const CentreChoices& c, int workers) { return Grouped(c) ? c.groups : workers; }

CentreChoices ResolveCentre(const CentreChoices& preset, const StrategyOptions& options) {
  CentreChoices c = preset;
  if (options.inner != "auto") c.inner = options.inner;
  if (options.groups > 0) c.groups = options.groups;
  c.servers = options.servers;
  if (options.merge != "auto") c.merge = options.merge;
  if (options.pace != "auto") c.pace = options.pace;
  if (options.period >= 0) c.period = options.period;
  if (options.push > 0) c.push = options.push;
  if (options.fetch > 0) c.fetch = options.fetch;
  if (options.staleness >= 0) c.staleness = options.staleness;
  if (c.pace == "clock" && c.staleness < 0) c.staleness = 0;
  if (options.stale != "auto") {
    c.stale = options.stale;
  } else {
    c.stale = c.pace == "free" ? (c.merge == "gradient" || c.merge == "average" ? "scale" : "drop")
                               : "wait";
  }
  if (Waits(c) && options.fetch == 0) c.fetch = c.push;
  CheckCentre(c);
  CheckServers(c);
  return c;
}

std::unique_ptr<Strategy> MakeCentreWorker(const StrategySetup& setup, World& world,
                                           const CentreChoices& c) {
  // A client that is no rank counts as any.
  const int worker = std::max(0, world.rank() - c.servers);
  const int workers = world.size() - c.servers;
  Choices choices{.plan = setup.plan, .worker = worker, .workers = workers};
  bool leads = true;
  std::unique_ptr<SharedWeights> shared;
  if (WorksInTeams(c)) {
    const int group = GroupOf(worker, workers, c.groups);
    const int first = LeaderOf(group, workers, c.groups);
    Group& team = world.Team(group, worker - first, LeaderOf(group + 1, workers, c.groups) - first);
    if (Grouped(c)) {
      leads = team.rank() == 0;
      choices.team = std::make_unique<LeaseTeam>(team);
      if (team.size() > 1) {
        choices.inner =
            std::make_unique<InnerAllReduce>(team, FindAllReduce("ring"), WireType::kF32);
      }
    } else {
      auto inner = std::make_unique<InnerHogwild>(team);
      shared = std::make_unique<SharedWeights>(team, *inner);
      choices.inner = std::move(inner);
    }
  }
  if (!choices.inner) choices.inner = std::make_unique<InnerAlone>(1);
  choices.updates = c.merge != "gradient" || c.push > 1 || c.fetch > 1;
  choices.period = PeriodOf(c);
  choices.clocked = Clocked(c);
  choices.own_samples = setup.own_samples;
  if (!leads) return std::make_unique<Composed>(std::move(choices));
  // With a push for each lease few wait here: what they are made from gets old.
  const int ahead = PeriodOf(c) == 1 ? 2 : 64;
  std::vector<Client::Holder> servers;
  for (int s = 0; s < c.servers; ++s) {
    servers.push_back({&world.LinkTo(s), PortionOf(setup.layout.state, s, c.servers)});
  }
  choices.centre = std::make_unique<Client>(std::move(servers), ahead);
  choices.merge = MakeMerge(c, setup.options, *choices.centre, std::move(shared));
  return std::make_unique<Composed>(std::move(choices));
}

namespace {

std::vector<Link*> ClientLinks(World& world, const CentreChoices& c) {
  const int workers = world.size() - c.servers, clients = ClientsOf(c, workers);
  std::vector<Link*> links;
  for (int i = 0; i < clients; ++i) {
    const int worker = Grouped(c) ? LeaderOf(i, workers, c.groups) : i;
    links.push_back(&world.LinkTo(c.servers + worker));
  }
  return links;
}

std::unique_ptr<Server> MakePortionServer(const StrategySetup& setup, World& world,
                                          const CentreChoices& c) {
  const Range portion = PortionOf(setup.layout.state, world.rank(), c.servers);
  const Layout layout = CutLayout(setup.layout, portion);
  return std::make_unique<PortionServer>(PortionServer::Setup{
      .first = &world.LinkTo(0),
      .clients = ClientLinks(world, c),
      .floats = portion.size,
      .rule = [&](Device& device) { return MakeRule(c, setup, layout, 1, device); },
      .log = setup.log});
}

std::unique_ptr<PortionBoard> MakeBoard(const StrategySetup& setup, World& world,
                                        const CentreChoices& c) {
  if (c.servers == 1) return nullptr;
  std::vector<Link*> others;
  for (int s = 1; s < c.servers; ++s) others.push_back(&world.LinkTo(s));
  return std::make_unique<PortionBoard>(setup.layout, std::move(others));
}

}  // namespace

std::unique_ptr<Server> MakeCentreServer(const StrategySetup& setup, World& world,
                                         const CentreChoices& c, std::span<const float> state) {
  if (setup.layout.state < size_t(c.servers) * Layout::kAlignment) {
    throw UsageError("strategy.servers = {}: the model has only {} parameters", c.servers,
                     setup.layout.state);
  }
  if (WorksInTeams(c) && world.together()) world.Team(-1, 0, 1);  // a division needs all
  if (world.rank() > 0) return MakePortionServer(setup, world, c);
  const int clients = ClientsOf(c, world.size() - c.servers);
  CentreServer::Setup server{.clients = ClientLinks(world, c),
                             .reception = world.reception(),
                             .plan = setup.plan,
                             .positions = PositionsOf(setup.plan),
                             .lease = LeaseOf(setup.plan, clients),
                             .broadcasts = c.merge == "gradient" && c.broadcasts && !Waits(c),
                             .log = setup.log};
  server.when = c.pace == "clock"   ? CentreServer::When::kClock
                : c.pace == "round" ? CentreServer::When::kRound
                                    : CentreServer::When::kArrival;
  server.answers = c.pace == "free" && (c.merge == "halve" || c.merge == "average");
  server.staleness = std::max<int64_t>(0, c.staleness);
  if (c.staleness >= 0 && c.pace == "free") {
    server.stale = c.stale == "drop"   ? CentreServer::Stale::kDrop
                   : c.stale == "wait" ? CentreServer::Stale::kWait
                                       : CentreServer::Stale::kScale;
  }
  auto board = MakeBoard(setup, world, c);
  const Layout layout = board ? CutLayout(setup.layout, board->own()) : setup.layout;
  server.rule = [&](Device& device) { return MakeRule(c, setup, layout, clients, device); };
  auto centre = std::make_unique<CentreServer>(std::move(server), state, std::move(board));
  centre->OnClose([&world](const Lease&) { world.Worked(); });
  return centre;
}

}  // namespace trireme
