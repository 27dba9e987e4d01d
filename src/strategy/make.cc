#include "strategy/make.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "strategy/exchange/group_average.h"
#include "strategy/exchange/neighbour_inboxes.h"
#include "strategy/exchange/shared_state.h"
#include "strategy/exchange/shared_weights.h"
#include "strategy/inner/hogwild.h"
#include "strategy/server/parameter_server.h"
#include "strategy/server/partition_server.h"
#include "strategy/server/rule.h"
#include "strategy/work/balanced_work.h"
#include "strategy/work/leases.h"
#include "strategy/work/random_work.h"
#include "strategy/work/shared_work.h"
#include "strategy/work/step_work.h"
#include "transport/memory.h"

namespace trireme {
namespace {

InnerNeeds InnerNeedsOf(const StrategySetup& setup, DeviceGroups* devices) {
  const StrategyChoice& c = setup.choice;
  InnerNeeds needs{.plan = setup.plan,
                   .ranks = c.ranks,
                   .servers = c.servers,
                   .deterministic = c.deterministic,
                   .in_step = c.in_step(),
                   .balanced = c.balanced,
                   .differences = !c.merge->gradients,
                   .star = c.star,
                   .overlap = c.overlap,
                   .algorithm = c.options.algorithm,
                   .wire = c.options.wire,
                   .common = setup.common,
                   .devices = devices,
                   .log = setup.show_sums ? setup.log : nullptr};
  needs.bucket_bytes =
      std::min(size_t(c.options.bucket_mb * 1e6), setup.layout.summand * sizeof(float));
  return needs;
}

// Steps of a client between meetings; 0: one at the end of an epoch.
int PeriodOf(const StrategySetup& setup) {
  const int64_t clients = std::max(1, setup.choice.clients());
  const int64_t lease = LeaseSize(setup.plan, int(clients));
  return setup.choice.steps_between_meetings(setup.plan.samples / (clients * lease));
}

std::unique_ptr<ServerRule> MakeRule(const StrategySetup& setup, const Layout& layout,
                                     Device& device) {
  const StrategyChoice& c = setup.choice;
  const int clients = std::max(1, c.clients());
  const int period = PeriodOf(setup);
  return c.merge->rule({.layout = layout,
                        .device = device,
                        .optimizer = setup.optimizer,
                        .schedule = setup.schedule,
                        .clients = clients,
                        .samples = period ? double(LeaseSize(setup.plan, clients) * period)
                                          : double(setup.plan.samples) / clients,
                        .rounds = c.rounds(),
                        .alpha = c.options.alpha,
                        .outer_momentum = c.options.outer_momentum});
}

// Those that advance together with this rank, which is a worker.
Group& GroupOf(const StrategyChoice& c, World& world, int worker) {
  if (!c.groups) return world.group();
  const int group = c.GroupOf(worker), first = c.FirstOf(group);
  return world.Subgroup(group, worker - first, c.FirstOf(group + 1) - first);
}

// This rank, or its group, among those that take leases. One that is no rank counts as any.
int NumberOf(const StrategyChoice& c, World& world) {
  const int worker = std::max(0, world.rank() - c.servers);
  return c.led() ? c.GroupOf(worker) : worker;
}

// But of clocks, whose leases are shards.
LeaseTable::Run LeasesOf(const StrategySetup& setup) {
  const StrategyChoice& c = setup.choice;
  return {.samples = setup.plan.samples,
          .total = PositionsOf(setup.plan),
          .size = LeaseSize(setup.plan, c.clients()),
          .border = c.open_epochs() ? EpochBorder::kOpen : EpochBorder::kBarrier};
}

Memory& MemoryOf(World& world) {
  if (Memory* memory = world.memory()) return *memory;
  throw UsageError(
      "strategy.centre = \"memory\": the ranks of this run have no memory in common; use "
      "--transport threads, shm or tcp");
}

std::unique_ptr<Client> MakeClientOf(const StrategySetup& setup, World& world,
                                     LeaseSource::Ahead ahead) {
  const StrategyChoice& c = setup.choice;
  if (c.in_memory()) {
    Link& server = world.LinkTo(0);
    Memory& memory = MemoryOf(world);
    const MemoryCentre::Place centre{
        .memory = memory, .clients = c.clients(), .timeout_s = server.timeout_s()};
    if (!memory.one_fate()) return std::make_unique<Client>(server, ahead, centre);
    return std::make_unique<Client>(server, ahead, centre,
                                    Handout::Place{.memory = memory,
                                                   .run = LeasesOf(setup),
                                                   .client = NumberOf(c, world),
                                                   .clients = c.clients(),
                                                   .timeout_s = server.timeout_s()});
  }
  std::vector<ServerLine::Holder> servers;
  for (int s = 0; s < c.servers; ++s) {
    servers.push_back({&world.LinkTo(s), PartitionOf(setup.layout.trained(), s, c.servers)});
  }
  return std::make_unique<Client>(std::move(servers), ahead);
}

std::unique_ptr<ServerExchange> MakeServerExchange(const StrategySetup& setup, World& world,
                                                   std::unique_ptr<SharedWeights> shared) {
  const StrategyChoice& c = setup.choice;
  const int period = PeriodOf(setup);
  // With a push for each lease few wait here: what they are made from gets old.
  LeaseSource::Ahead ahead{.most = period == 1 ? 2 : 64};
  if (c.open_epochs() && period > 1) ahead = {.most = 4096, .always = true};
  auto client = MakeClientOf(setup, world, ahead);
  std::unique_ptr<NeighbourInboxes> inboxes;
  if (c.merge->inboxes) {
    inboxes = std::make_unique<NeighbourInboxes>(
        dynamic_cast<MemoryCentre&>(client->centre()),
        NeighbourInboxes::Place{.own = NumberOf(c, world),
                                .clients = c.clients(),
                                .neighbours = c.options.neighbours,
                                .seed = setup.seed});
  }
  auto merge = c.merge->make({.centre = client->centre(),
                              .shared = std::move(shared),
                              .inboxes = std::move(inboxes),
                              .push = c.push,
                              .fetch = c.fetch,
                              .asks = !c.broadcasts,
                              .waits = c.waits(),
                              .clock = c.clocked() ? c.staleness : -1,
                              .rounds = c.rounds(),
                              .alpha = c.options.alpha,
                              .clients = c.clients()});
  return std::make_unique<ServerExchange>(std::move(client), std::move(merge), period, c.led());
}

// Of a run that servers keep, which record it.
std::unique_ptr<Strategy> MakeClient(const StrategySetup& setup, World& world,
                                     DeviceGroups* devices) {
  constexpr bool kRecords = false;
  const StrategyChoice& c = setup.choice;
  // A client that is no rank counts as any.
  const int worker = std::max(0, world.rank() - c.servers);
  Group* const group = c.groups ? &GroupOf(c, world, worker) : nullptr;
  InnerNeeds needs = InnerNeedsOf(setup, devices);
  // Each group for itself: they may lie on different machines, and none waits for another.
  if (group && c.inner->algorithm) {
    needs.algorithm = c.inner->algorithm(needs, *group);
    if (setup.log && group->rank() == 0 && needs.algorithm != c.options.algorithm) {
      setup.log->Info("strategy",
                      "group {}: algorithm {}, chosen by measured latency and bandwidth",
                      c.GroupOf(worker), needs.algorithm);
    }
  }
  auto inner = c.inner->make(needs, group);
  if (c.led() && group->rank() != 0) {
    const bool updates = !c.merge->gradients || c.push > 1 || c.fetch > 1;
    return std::make_unique<Strategy>(std::move(inner), std::make_unique<Follower>(updates),
                                      std::make_unique<GroupedLeases>(*group, nullptr, nullptr),
                                      kRecords);
  }
  std::unique_ptr<SharedWeights> shared;
  if (c.groups && c.inner->shares_memory) {
    shared = std::make_unique<SharedWeights>(*group, dynamic_cast<InnerHogwild&>(*inner));
  }
  auto exchange = MakeServerExchange(setup, world, std::move(shared));
  const Leases::Cut cut{.shards = c.clocked(), .own_samples = setup.own_samples};
  auto leases = std::make_unique<Leases>(setup.plan, cut, *exchange);
  std::unique_ptr<WorkSource> source;
  if (c.led()) {
    source = std::make_unique<GroupedLeases>(*group, std::move(leases), exchange.get());
  } else {
    source = std::move(leases);
  }
  return std::make_unique<Strategy>(std::move(inner), std::move(exchange), std::move(source),
                                    kRecords);
}

// Of a run that its workers keep.
std::unique_ptr<Strategy> MakePeer(const StrategySetup& setup, World& world,
                                   DeviceGroups* devices) {
  const StrategyChoice& c = setup.choice;
  const bool records = world.rank() == kRecordingRank;
  const int worker = world.rank() - c.servers;
  auto inner = c.inner->make(InnerNeedsOf(setup, devices), &GroupOf(c, world, worker));
  if (!c.in_step()) {
    auto queue = std::make_unique<SharedWorkQueue>(world.group(), setup.plan,
                                                   LeaseSize(setup.plan, c.workers()));
    auto state = std::make_unique<SharedState>(
        *inner,
        SharedState::Moment{.quiet = [&q = *queue](FunctionRef<void()> look) { q.Quiet(look); },
                            .taken = [&q = *queue] { return q.taken(); }});
    auto source = std::make_unique<SharedWork>(std::move(queue), *state);
    return std::make_unique<Strategy>(std::move(inner), std::move(state), std::move(source),
                                      records);
  }
  auto exchange = std::make_unique<Exchange>();
  std::optional<Members> members;
  if (c.local_steps()) {
    exchange = std::make_unique<GroupAverage>(
        world.group(), setup.plan, c.period,
        GroupAverage::Rates{.rate = c.options.outer_lr, .momentum = c.options.outer_momentum});
    const int group = c.groups ? c.GroupOf(worker) : 0;
    members =
        c.groups ? Members{c.FirstOf(group), c.FirstOf(group + 1)} : Members{worker, worker + 1};
  }
  std::unique_ptr<WorkSource> source;
  if (c.balanced) {
    source = std::make_unique<BalancedWork>(world.group(), setup.plan, c.servers);
  } else if (c.inner->one_source) {
    source = std::make_unique<RandomWork>(setup.plan, worker, c.workers(), setup.seed);
  } else {
    source = std::make_unique<StepWork>(setup.plan, worker, c.workers(), members);
  }
  return std::make_unique<Strategy>(std::move(inner), std::move(exchange), std::move(source),
                                    records);
}

std::vector<Link*> ClientLinks(World& world, const StrategyChoice& c) {
  std::vector<Link*> links;
  for (int i = 0; i < c.clients(); ++i) {
    links.push_back(&world.LinkTo(c.servers + c.LeaderOf(i)));
  }
  return links;
}

std::unique_ptr<Server> MakePartitionServer(const StrategySetup& setup, World& world) {
  const StrategyChoice& c = setup.choice;
  const Range partition = PartitionOf(setup.layout.trained(), world.rank(), c.servers);
  const Layout layout = CutLayout(setup.layout, partition);
  return std::make_unique<PartitionServer>(PartitionServer::Setup{
      .first = &world.LinkTo(0),
      .clients = ClientLinks(world, c),
      .floats = partition.size,
      .threads = setup.threads,
      .rule = [&setup, layout](Device& device) { return MakeRule(setup, layout, device); },
      .applied = [&world] { world.Worked(); },
      .broadcasts = c.broadcasts,
      .log = setup.log});
}

std::unique_ptr<PartitionSequencer> MakeSequencer(const StrategySetup& setup, World& world) {
  if (setup.choice.servers == 1) return nullptr;
  std::vector<Link*> others;
  for (int s = 1; s < setup.choice.servers; ++s) others.push_back(&world.LinkTo(s));
  return std::make_unique<PartitionSequencer>(setup.layout, std::move(others));
}

ParameterServer::When WhenOf(PaceKind pace) {
  if (pace == PaceKind::kClock) return ParameterServer::When::kClock;
  return pace == PaceKind::kRound ? ParameterServer::When::kRound : ParameterServer::When::kArrival;
}

ParameterServer::Stale StaleOf(const StrategyChoice& c) {
  if (c.staleness < 0 || c.pace != PaceKind::kFree) return ParameterServer::Stale::kTake;
  switch (c.stale) {
    case StaleKind::kWait:
      return ParameterServer::Stale::kWait;
    case StaleKind::kDrop:
      return ParameterServer::Stale::kDrop;
    case StaleKind::kScale:
      break;
  }
  return ParameterServer::Stale::kScale;
}

}  // namespace

int64_t LeaseSize(const Plan& plan, int clients) {
  return std::max<int64_t>(1, plan.batch / std::max(1, clients));
}

// A client that was killed may leave its inbox to the next life's side for a moment.
MemoryRoom MemoryRoomOf(const StrategyChoice& choice, const Layout& layout) {
  if (!choice.in_memory()) return {};
  constexpr size_t kNotes = size_t{1} << 20;  // of a region: its ring
  const size_t state = layout.trained() * sizeof(float) + kNotes;
  const size_t clients = size_t(choice.clients()) + 1;
  const size_t inboxes = choice.merge->inboxes ? clients * state : 0;
  return {.regions = state + kNotes + inboxes, .slots = 2 * clients * state};
}

std::string ResolveAlgorithm(const StrategySetup& setup, World& world, DeviceGroups* devices) {
  const StrategyChoice& c = setup.choice;
  if (c.leases_work() || !c.inner->algorithm) return c.options.algorithm;
  return c.inner->algorithm(InnerNeedsOf(setup, devices), world.group());
}

std::unique_ptr<Strategy> MakeWorker(const StrategySetup& setup, World& world,
                                     DeviceGroups* devices) {
  TRIREME_ASSERT(setup.choice.ranks == world.size());
  return setup.choice.leases_work() ? MakeClient(setup, world, devices)
                                    : MakePeer(setup, world, devices);
}

std::unique_ptr<Server> MakeServer(const StrategySetup& setup, World& world,
                                   std::span<const float> state) {
  const StrategyChoice& c = setup.choice;
  TRIREME_ASSERT(c.leases_work() && state.size() == setup.layout.trained());
  if (state.size() < size_t(c.servers) * Layout::kAlignment) {
    throw UsageError("strategy.servers = {}: the model has only {} parameters", c.servers,
                     state.size());
  }
  if (c.groups && world.together()) world.Subgroup(-1, 0, 1);  // a division needs all
  if (world.rank() > 0) return MakePartitionServer(setup, world);
  const LeaseTable::Run leases = LeasesOf(setup);
  ParameterServer::Setup server{.clients = ClientLinks(world, c),
                                .acceptor = world.acceptor(),
                                .plan = setup.plan,
                                .positions = leases.total,
                                .lease = leases.size,
                                .border = leases.border,
                                .threads = setup.threads,
                                .when = WhenOf(c.pace),
                                .staleness = std::max<int64_t>(0, c.staleness),
                                .stale = StaleOf(c),
                                .broadcasts = c.broadcasts,
                                .memory = c.in_memory() ? &MemoryOf(world) : nullptr,
                                .log = setup.log};
  auto sequencer = MakeSequencer(setup, world);
  const Layout layout = sequencer ? CutLayout(setup.layout, sequencer->own()) : setup.layout;
  server.rule = [&](Device& device) { return MakeRule(setup, layout, device); };
  auto centre = std::make_unique<ParameterServer>(std::move(server), state, std::move(sequencer));
  centre->OnClose([&world](const Lease&) { world.Worked(); });
  return centre;
}

}  // namespace trireme
