#include "strategy/refusals.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "optimizer/rules.h"
#include "strategy/inner/algorithm.h"

namespace trireme {
namespace {

struct Case {
  const StrategyChoice& c;
  const StrategyOptions& o;  // as the recipe has them
  const StrategyPreset& preset;
  const StrategyScene& scene;
};

struct Refusal {
  bool (*holds)(const Case&);
  std::string (*why)(const Case&);
};

bool Gradients(const Case& x) { return x.c.merge->gradients; }
bool FreePace(const Case& x) { return x.c.pace == PaceKind::kFree; }
bool ManyServers(const Case& x) { return x.o.servers > 1; }

// Clocks without staleness add in shard order.
bool EqualBits(const StrategyChoice& c) { return c.in_step() || (c.clocked() && c.staleness == 0); }

// An update that is linear in the gradient: updates of parts add up to the update of the sum.
bool PlainUpdate(const OptimizerOptions& o) {
  return MakeRule(o)->keeps().empty() && !FindRule(o.name).by_tensor && o.weight_decay == 0 &&
         o.clip == 0;
}

// ---- an optimizer of all samples at once

constexpr Refusal kWhole[] = {
    {[](const Case& x) {
       return !x.c.in_step() || x.c.centre != CentreKind::kNone || x.c.inner->alone ||
              x.c.inner->servers > 0 || x.c.inner->one_source || !Gradients(x);
     },
     [](const Case& x) {
       return fmt::format(
           "strategy {}: optimizer {} shares out its work by itself; use strategy allreduce, or "
           "another optimizer",
           x.preset.name, x.scene.optimizer->name);
     }},
    {[](const Case& x) { return x.o.sync_batch_norm || x.c.balanced || x.o.wire != "f32"; },
     [](const Case& x) {
       return fmt::format(
           "strategy.sync_batch_norm, strategy.balance and strategy.wire are for steps of a batch; "
           "optimizer {} has none, unset them",
           x.scene.optimizer->name);
     }},
    {[](const Case& x) { return x.c.deterministic && x.c.workers() > 1; },
     [](const Case& x) {
       return fmt::format(
           "trainer.deterministic: with optimizer {} portions are added up as they come, so the "
           "bits depend on which worker is first; use one rank, or two of which one trains",
           x.scene.optimizer->name);
     }},
};

// ---- how the four choices go together

constexpr Refusal kChoices[] = {
    {[](const Case& x) { return x.c.leases_work() && x.c.in_step(); },
     [](const Case&) -> std::string {
       return "strategy.centre = \"server\" needs strategy.pace free, clock or round (as in easgd, "
              "ssp and federated); to advance in step with a server, use strategy sync-ps";
     }},
    {[](const Case& x) { return x.c.in_memory() && !x.c.merge->adds; },
     [](const Case& x) {
       return fmt::format(
           "strategy.centre = \"memory\": workers add to what lies there, and nobody computes; "
           "strategy.merge = \"{}\" needs a server, use elastic or moves",
           x.c.merge->name);
     }},
    {[](const Case& x) { return x.c.merge->only_memory && !x.c.in_memory(); },
     [](const Case& x) {
       return fmt::format(
           "strategy.merge = \"{}\": workers change what lies in memory by themselves; set "
           "strategy.centre to memory, or use gradient or elastic with a server",
           x.c.merge->name);
     }},
    {[](const Case& x) {
       const int others = x.c.clients() - 1;
       return x.c.merge->inboxes && x.o.neighbours > 1 && x.o.neighbours > others;
     },
     [](const Case& x) {
       return fmt::format(
           "strategy.neighbours = {}: a worker has only {}; set fewer, or more "
           "transport.ranks",
           x.o.neighbours, Counted(x.c.clients() - 1, "other"));
     }},
    {[](const Case& x) { return x.c.in_memory() && !FreePace(x); },
     [](const Case& x) {
       return fmt::format(
           "strategy.centre = \"memory\": an add counts at once, so strategy.pace must be free, "
           "not {}",
           x.o.pace);
     }},
    {[](const Case& x) { return x.c.in_memory() && x.c.staleness >= 0; },
     [](const Case& x) {
       return fmt::format(
           "strategy.staleness = {}: with strategy.centre = \"memory\" nobody looks at an add "
           "before it counts; staleness is measured, use a server to bound it",
           x.c.staleness);
     }},
    {[](const Case& x) { return x.c.in_memory() && ManyServers(x); },
     [](const Case& x) {
       return fmt::format(
           "strategy.servers = {}: with strategy.centre = \"memory\" one server leases the work, "
           "and holds no weights",
           x.o.servers);
     }},
    {[](const Case& x) { return x.c.leases_work() && !x.c.inner->groups && !x.c.inner->alone; },
     [](const Case& x) {
       return fmt::format(
           "strategy.inner = \"{}\" brings all workers together in every step, so a server has "
           "nothing to merge; use alone, allreduce or hogwild",
           x.c.inner->name);
     }},
    {[](const Case& x) { return ManyServers(x) && !x.c.leases_work(); },
     [](const Case& x) {
       return fmt::format(
           "strategy.servers = {}: {} keeps no centre on servers; downpour and easgd do",
           x.o.servers, x.preset.name);
     }},
    {[](const Case& x) { return x.c.centre == CentreKind::kNone && x.c.inner->alone; },
     [](const Case& x) {
       return fmt::format(
           "strategy.centre = \"none\": the workers of {} train alone and would never agree; use "
           "group, server or memory",
           x.preset.name);
     }},
    {[](const Case& x) {
       return x.c.local_steps() && !x.c.inner->alone && !(x.c.inner->groups && x.c.inner->in_step);
     },
     [](const Case& x) {
       return fmt::format(
           "strategy.centre = \"group\" averages weights of workers that train alone or all-reduce "
           "in groups; set strategy.inner to alone or allreduce, not {}",
           x.c.inner->name);
     }},
    {[](const Case& x) {
       const bool in_step = x.c.local_steps() || x.c.inner->in_step;
       return !x.c.leases_work() && x.c.pace != (in_step ? PaceKind::kInStep : PaceKind::kFree);
     },
     [](const Case& x) {
       return fmt::format(
           "strategy.pace = \"{}\": {}", x.o.pace,
           x.c.inner->in_step || x.c.local_steps()
               ? fmt::format("the ranks of {} advance in step; use auto", x.preset.name)
               : fmt::format("the ranks of {} run at a free pace; use auto", x.preset.name));
     }},
    {[](const Case& x) { return x.c.centre == CentreKind::kNone && !x.c.merge->in_step; },
     [](const Case& x) {
       return fmt::format("strategy.merge = \"{}\": {} adds up only {}", x.c.merge->name,
                          x.preset.name,
                          x.c.inner->differences ? "gradients or differences" : "gradients");
     }},
    {[](const Case& x) {
       return x.c.centre == CentreKind::kNone && !Gradients(x) && !x.c.inner->differences;
     },
     [](const Case& x) {
       return fmt::format("strategy.merge = \"{}\": {} adds up only gradients", x.c.merge->name,
                          x.preset.name);
     }},
    {[](const Case& x) { return x.c.local_steps() && !x.c.merge->averages; },
     [](const Case& x) {
       return fmt::format(
           "strategy.merge = \"{}\": strategy.centre = \"group\" averages weights; use average",
           x.c.merge->name);
     }},
};

// ---- with a server

constexpr Refusal kServers[] = {
    {[](const Case& x) { return !x.c.merge->make; },
     [](const Case& x) {
       return fmt::format(
           "strategy.merge = \"{}\" works only with sync-ps, where all workers start from the same "
           "weights; at a free pace use elastic, average or gradient",
           x.c.merge->name);
     }},
    {[](const Case& x) { return x.c.clocked() && !Gradients(x); },
     [](const Case& x) {
       return fmt::format(
           "strategy.pace = \"clock\" adds up the gradients of a step's shards, so strategy.merge "
           "must be gradient, not {}",
           x.c.merge->name);
     }},
    {[](const Case& x) { return x.c.clocked() && x.c.groups > 0; },
     [](const Case&) -> std::string {
       return "strategy.pace = \"clock\" hands out single shards to workers with weights of their "
              "own; use strategy.inner = \"alone\"";
     }},
    {[](const Case& x) { return x.c.inner->shares_memory && !x.c.merge->own_alone; },
     [](const Case& x) {
       return fmt::format(
           "strategy.inner = \"hogwild\" shares weights, so with strategy.merge = \"{}\" each "
           "worker would also send the others' changes; use gradient, or moves with "
           "strategy.centre = \"memory\", as dogwild does",
           x.c.merge->name);
     }},
    {[](const Case& x) { return x.c.clocked() && (x.c.push != 1 || x.c.fetch != 1); },
     [](const Case&) -> std::string {
       return "strategy.pace = \"clock\" pushes every shard's gradient on its own and fetches "
              "weights when they are too old; strategy.push and strategy.fetch must be 1";
     }},
    {[](const Case& x) { return x.c.pace == PaceKind::kRound && !x.c.merge->averages; },
     [](const Case& x) {
       return fmt::format(
           "strategy.pace = \"round\" averages the weights of all clients, so strategy.merge must "
           "be average, not {}",
           x.c.merge->name);
     }},
    {[](const Case& x) { return x.c.waits() && x.c.staleness < 0; },
     [](const Case&) -> std::string {
       return "strategy.stale = \"wait\" needs a bound; set strategy.staleness";
     }},
    {[](const Case& x) { return x.c.waits() && !x.c.merge->waits; },
     [](const Case& x) {
       return fmt::format(
           "strategy.stale = \"wait\": with strategy.merge = \"{}\" a worker keeps its own weights "
           "from one meeting to the next, and all others would stall meanwhile; use strategy.stale "
           "drop, or strategy.merge gradient or elastic",
           x.c.merge->name);
     }},
    {[](const Case& x) { return x.c.waits() && x.c.inner->shares_memory; },
     [](const Case&) -> std::string {
       return "strategy.stale = \"wait\": with strategy.inner = \"hogwild\" the workers of a group "
              "share weights and none of them waits; use scale or drop";
     }},
    {[](const Case& x) { return x.c.waits() && Gradients(x) && x.c.fetch != x.c.push; },
     [](const Case& x) {
       return fmt::format(
           "strategy.stale = \"wait\": each push is computed from one version of the weights, so "
           "weights are fetched once per push; strategy.fetch must be {} (strategy.push), not {}",
           x.c.push, x.c.fetch);
     }},
    {[](const Case& x) { return !FreePace(x) && x.c.stale != StaleKind::kWait; },
     [](const Case& x) {
       return fmt::format(
           "strategy.stale = \"{}\": strategy.pace clock and round wait for what would be too "
           "stale; use wait",
           x.o.stale);
     }},
    {[](const Case& x) {
       return x.c.stale == StaleKind::kScale && x.c.staleness >= 0 && !x.c.merge->scales;
     },
     [](const Case& x) {
       return fmt::format(
           "strategy.stale = \"scale\" shrinks a stale gradient or average; with strategy.merge = "
           "\"{}\" use drop",
           x.c.merge->name);
     }},
    // Several servers agree on nothing but an order of single pushes.
    {[](const Case& x) { return ManyServers(x) && !FreePace(x); },
     [](const Case& x) {
       return fmt::format(
           "strategy.servers = {}: several servers can share a centre only where pushes are "
           "applied "
           "on arrival (strategy.pace = \"free\"), but {} needs the whole centre at one moment",
           x.o.servers, x.preset.name);
     }},
    {[](const Case& x) { return ManyServers(x) && x.c.waits(); },
     [](const Case& x) {
       return fmt::format(
           "strategy.servers = {}: with strategy.stale = \"wait\" server 0 would have to accept a "
           "push before the others have their partitions of it; use scale or drop",
           x.o.servers);
     }},
};

// ---- what else the recipe asks for

constexpr Refusal kOthers[] = {
    {[](const Case& x) { return x.c.deterministic && !EqualBits(x.c); },
     [](const Case& x) {
       return fmt::format(
           "trainer.deterministic: the result of strategy {} depends on which worker comes first; "
           "use a strategy that advances in step (allreduce, sync-ps) or ssp with "
           "strategy.staleness = 0",
           x.preset.name);
     }},
    {[](const Case& x) { return x.c.local_steps() && (x.c.deterministic || x.o.sync_batch_norm); },
     [](const Case& x) {
       return fmt::format(
           "strategy {}: workers step alone, so the result depends on their number and batch-norm "
           "sees one worker's samples; unset trainer.deterministic and strategy.sync_batch_norm",
           x.preset.name);
     }},
    {[](const Case& x) { return x.scene.host_memory && NeedsDevices(x.o.algorithm); },
     [](const Case& x) {
       return fmt::format(
           "strategy.algorithm = \"{}\": the ranks compute on the processor; use auto, or cards "
           "(--device cuda)",
           x.o.algorithm);
     }},
    {[](const Case& x) { return x.c.deterministic && !AddsInShardOrder(x.o.algorithm); },
     [](const Case& x) {
       return fmt::format(
           "strategy.algorithm = \"{}\" adds in an order that depends on the number of ranks; "
           "trainer.deterministic needs auto, shared or chain",
           x.o.algorithm);
     }},
    {[](const Case& x) { return x.c.deterministic && x.o.wire != "f32"; },
     [](const Case& x) {
       return fmt::format(
           "strategy.wire = \"{}\" rounds at every hop, so the bits depend on the number of ranks; "
           "trainer.deterministic needs f32",
           x.o.wire);
     }},
    {[](const Case& x) { return x.o.sync_batch_norm && (x.c.deterministic || !x.c.in_step()); },
     [](const Case&) -> std::string {
       return "strategy.sync_batch_norm needs a strategy that advances in step (allreduce, "
              "sync-ps, bsp) and adds in an order that trainer.deterministic does not allow";
     }},
    {[](const Case& x) { return x.c.deterministic && x.c.in_step() && !Gradients(x); },
     [](const Case&) -> std::string {
       return "trainer.deterministic: weight differences agree with gradients only up to rounding; "
              "use strategy.merge = \"gradient\"";
     }},
    {[](const Case& x) { return x.c.star && x.c.inner->servers == 0; },
     [](const Case& x) {
       return fmt::format(
           "strategy.route = \"{}\" is for gradients that travel to rank 0 in every step; strategy "
           "{} has no such server, use sync-ps or leave the key out",
           x.o.route, x.preset.name);
     }},
    {[](const Case& x) { return x.o.overlap != "reduce" && x.c.inner->servers == 0; },
     [](const Case& x) {
       return fmt::format(
           "strategy.overlap = \"{}\" is for gradients and weights that travel to rank 0 and back "
           "in "
           "every step; strategy {} has no such server, use sync-ps or leave the key out",
           x.o.overlap, x.preset.name);
     }},
    {[](const Case& x) { return x.c.balanced && (!x.c.in_step() || x.c.local_steps()); },
     [](const Case& x) {
       return fmt::format(
           "strategy.balance = \"rate\" is for workers whose gradients are summed in every step "
           "(allreduce, sync-ps, bsp); with strategy {} use equal",
           x.preset.name);
     }},
    {[](const Case& x) { return x.c.balanced && x.o.sync_batch_norm; },
     [](const Case&) -> std::string {
       return "strategy.balance = \"rate\" needs several shards per worker, "
              "strategy.sync_batch_norm exactly one; unset one of them";
     }},
    {[](const Case& x) { return x.c.ranks <= x.c.servers; },
     [](const Case& x) {
       return fmt::format(
           "transport.ranks: strategy {} needs at least {} ranks ({} of them {}), got {}",
           x.preset.name, x.c.servers + 1, x.c.servers, x.c.servers > 1 ? "servers" : "a server",
           x.c.ranks);
     }},
    {[](const Case& x) { return x.c.groups > x.c.workers(); },
     [](const Case& x) {
       return fmt::format(
           "strategy.groups = {} is more than {}; set fewer groups or more transport.ranks",
           x.c.groups, Counted(x.c.workers(), "worker"));
     }},
    {[](const Case& x) { return x.c.inner->host_memory && !x.scene.host_memory; },
     [](const Case& x) {
       return fmt::format(
           "strategy {}: its workers touch each other's weights or gradients, which must lie in "
           "the memory of the processor; use --device cpu, or a strategy that sends them "
           "(allreduce, sync-ps)",
           x.preset.name);
     }},
    {[](const Case& x) { return x.c.inner->one_process && !x.scene.one_process; },
     [](const Case& x) {
       return fmt::format(
           "strategy {}: its workers must be threads of one process; use --transport threads",
           x.preset.name);
     }},
    {[](const Case& x) {
       return x.c.inner->shares_memory && !x.c.leases_work() && !x.scene.shared_memory;
     },
     [](const Case& x) {
       return fmt::format(
           "strategy {}: its workers must share memory; use --transport threads or shm",
           x.preset.name);
     }},
    {[](const Case& x) {
       return x.c.centre == CentreKind::kNone && !Gradients(x) && x.scene.optimizer &&
              !PlainUpdate(*x.scene.optimizer);
     },
     [](const Case&) -> std::string {
       return "strategy.merge = \"difference\" adds up weight changes, which is right only for "
              "plain SGD; set optimizer.name=sgd optimizer.momentum=0 optimizer.weight_decay=0 "
              "trainer.clip=0, or strategy.merge=gradient";
     }},
    {[](const Case& x) {
       return ManyServers(x) && x.scene.optimizer && x.scene.optimizer->clip > 0;
     },
     [](const Case& x) {
       return fmt::format(
           "strategy.servers = {}: trainer.clip needs the norm of all gradients, but each server "
           "has only a partition of them; set trainer.clip = 0",
           x.o.servers);
     }},
    {[](const Case& x) {
       return ManyServers(x) && x.scene.optimizer && FindRule(x.scene.optimizer->name).by_tensor;
     },
     [](const Case& x) {
       return fmt::format(
           "strategy.servers = {}: optimizer {} needs the length of each tensor, but a server may "
           "have only a part of one; set strategy.servers = 1",
           x.o.servers, x.scene.optimizer->name);
     }},
};

void RefuseFirst(std::span<const Refusal> list, const Case& x) {
  for (const Refusal& refusal : list) {
    if (refusal.holds(x)) throw UsageError("{}", refusal.why(x));
  }
}

}  // namespace

void RefuseImpossible(const StrategyChoice& choice, const StrategyPreset& preset,
                      const StrategyScene& scene) {
  const Case x{choice, choice.options, preset, scene};
  if (choice.whole) RefuseFirst(kWhole, x);
  RefuseFirst(kChoices, x);
  if (choice.leases_work()) RefuseFirst(kServers, x);
  RefuseFirst(kOthers, x);
}

}  // namespace trireme
