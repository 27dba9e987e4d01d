#include "strategy/make.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "strategy/centre_server.h"
#include "strategy/composed.h"
#include "strategy/portion_server.h"
#include "strategy/shared_weights.h"

namespace trireme {
namespace {

// Those that advance together with this rank, which is a worker.
Group& GroupOf(const StrategyChoice& c, World& world, int worker) {
  if (!c.groups) return world.group();
  const int group = c.GroupOf(worker), first = c.FirstOf(group);
  return world.Subgroup(group, worker - first, c.FirstOf(group + 1) - first);
}

std::unique_ptr<Strategy> MakeClient(const StrategySetup& setup, World& world) {
  const StrategyChoice& c = setup.choice;
  // A client that is no rank counts as any.
  const int worker = std::max(0, world.rank() - c.servers);
  Choices choices{.plan = setup.plan, .worker = worker, .workers = c.workers()};
  bool leads = true;
  std::unique_ptr<SharedWeights> shared;
  if (c.groups) {
    Group& group = GroupOf(c, world, worker);
    choices.inner = c.inner->make(setup, &group);
    if (c.inner->shared) shared = c.inner->shared(group, *choices.inner);
    if (c.led()) {
      leads = group.rank() == 0;
      choices.team = std::make_unique<LeaseTeam>(group);
    }
  } else {
    choices.inner = c.inner->make(setup, nullptr);
  }
  choices.updates = !c.merge->gradients || c.push > 1 || c.fetch > 1;
  choices.period = c.steps_between_meetings();
  choices.clocked = c.clocked();
  choices.own_samples = setup.own_samples;
  if (!leads) return std::make_unique<Composed>(std::move(choices));
  // With a push for each lease few wait here: what they are made from gets old.
  const int ahead = c.steps_between_meetings() == 1 ? 2 : 64;
  std::vector<Client::Holder> servers;
  for (int s = 0; s < c.servers; ++s) {
    servers.push_back({&world.LinkTo(s), PortionOf(setup.layout.state, s, c.servers)});
  }
  choices.centre = std::make_unique<Client>(std::move(servers), ahead);
  choices.merge = c.merge->make({setup, *choices.centre, std::move(shared)});
  return std::make_unique<Composed>(std::move(choices));
}

std::unique_ptr<Strategy> MakeInStep(const StrategySetup& setup, World& world) {
  const StrategyChoice& c = setup.choice;
  const int worker = world.rank() - c.servers;
  Choices choices{.plan = setup.plan,
                  .worker = worker,
                  .workers = c.workers(),
                  .records = world.rank() == kRecordingRank};
  choices.inner = c.inner->make(setup, &GroupOf(c, world, worker));
  if (c.local_steps()) {
    choices.anchor = std::make_unique<GroupCentre>(
        world.group(),
        GroupCentre::Rates{.rate = c.options.outer_lr, .momentum = c.options.outer_momentum});
    choices.period = c.period;
    const int group = c.groups ? c.GroupOf(worker) : 0;
    choices.members =
        c.groups ? Members{c.FirstOf(group), c.FirstOf(group + 1)} : Members{worker, worker + 1};
  } else if (!c.in_step()) {
    const int64_t lease = LeaseSize(setup.plan, c.workers());
    choices.handout = std::make_unique<Handout>(world.group(), setup.plan, lease);
  }
  return std::make_unique<Composed>(std::move(choices));
}

std::vector<Link*> ClientLinks(World& world, const StrategyChoice& c) {
  std::vector<Link*> links;
  for (int i = 0; i < c.clients(); ++i) {
    links.push_back(&world.LinkTo(c.servers + c.LeaderOf(i)));
  }
  return links;
}

std::unique_ptr<Server> MakePortionServer(const StrategySetup& setup, World& world) {
  const StrategyChoice& c = setup.choice;
  const Range portion = PortionOf(setup.layout.state, world.rank(), c.servers);
  const Layout layout = CutLayout(setup.layout, portion);
  return std::make_unique<PortionServer>(
      PortionServer::Setup{.first = &world.LinkTo(0),
                           .clients = ClientLinks(world, c),
                           .floats = portion.size,
                           .rule =
                               [&](Device& device) {
                                 return c.merge->rule({setup, layout, 1, device});
                               },
                           .log = setup.log});
}

std::unique_ptr<PortionBoard> MakeBoard(const StrategySetup& setup, World& world) {
  if (setup.choice.servers == 1) return nullptr;
  std::vector<Link*> others;
  for (int s = 1; s < setup.choice.servers; ++s) others.push_back(&world.LinkTo(s));
  return std::make_unique<PortionBoard>(setup.layout, std::move(others));
}

CentreServer::When WhenOf(PaceKind pace) {
  if (pace == PaceKind::kClock) return CentreServer::When::kClock;
  return pace == PaceKind::kRound ? CentreServer::When::kRound : CentreServer::When::kArrival;
}

CentreServer::Stale StaleOf(const StrategyChoice& c) {
  if (c.staleness < 0 || c.pace != PaceKind::kFree) return CentreServer::Stale::kTake;
  switch (c.stale) {
    case StaleKind::kWait:
      return CentreServer::Stale::kWait;
    case StaleKind::kDrop:
      return CentreServer::Stale::kDrop;
    case StaleKind::kScale:
      break;
  }
  return CentreServer::Stale::kScale;
}

}  // namespace

int64_t LeaseSize(const Plan& plan, int clients) {
  return std::max<int64_t>(1, plan.batch / std::max(1, clients));
}

std::string ResolveAlgorithm(const StrategySetup& setup, World& world) {
  return setup.choice.inner->algorithm ? setup.choice.inner->algorithm(setup, world.group())
                                       : setup.choice.options.algorithm;
}

std::unique_ptr<Strategy> MakeWorker(const StrategySetup& setup, World& world) {
  TRIREME_ASSERT(setup.choice.ranks == world.size());
  return setup.choice.has_server() ? MakeClient(setup, world) : MakeInStep(setup, world);
}

std::unique_ptr<Server> MakeServer(const StrategySetup& setup, World& world,
                                   std::span<const float> state) {
  const StrategyChoice& c = setup.choice;
  TRIREME_ASSERT(c.has_server() && state.size() == setup.layout.state);
  if (setup.layout.state < size_t(c.servers) * Layout::kAlignment) {
    throw UsageError("strategy.servers = {}: the model has only {} parameters", c.servers,
                     setup.layout.state);
  }
  if (c.groups && world.together()) world.Subgroup(-1, 0, 1);  // a division needs all
  if (world.rank() > 0) return MakePortionServer(setup, world);
  CentreServer::Setup server{.clients = ClientLinks(world, c),
                             .acceptor = world.acceptor(),
                             .plan = setup.plan,
                             .positions = PositionsOf(setup.plan),
                             .lease = LeaseSize(setup.plan, c.clients()),
                             .when = WhenOf(c.pace),
                             .staleness = std::max<int64_t>(0, c.staleness),
                             .stale = StaleOf(c),
                             .answers = c.pace == PaceKind::kFree && c.merge->answers,
                             .broadcasts = c.broadcasts,
                             .log = setup.log};
  auto board = MakeBoard(setup, world);
  const Layout layout = board ? CutLayout(setup.layout, board->own()) : setup.layout;
  server.rule = [&](Device& device) { return c.merge->rule({setup, layout, c.clients(), device}); };
  auto centre = std::make_unique<CentreServer>(std::move(server), state, std::move(board));
  centre->OnClose([&world](const Lease&) { world.Worked(); });
  return centre;
}

}  // namespace trireme
