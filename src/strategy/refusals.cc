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
  return MakeRule(o)->keeps().empty() && o.weight_decay == 0 && o.clip == 0;
}

// ---- how the four choices go together

constexpr Refusal kChoices[] = {
    {[](const Case& x) { return x.c.leases_work() && x.c.in_step(); },
     [](const Case&) -> std::string {
       return "strategy.centre = \"server\" has a pace of its own (strategy.pace free, clock or "
              "round: easgd, ssp and federated are examples); in step with a server is strategy "
              "sync-ps, which needs no leases";
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
       return fmt::format("strategy.servers = {}: {} has no centre at servers (downpour has)",
                          x.o.servers, x.preset.name);
     }},
    {[](const Case& x) { return x.c.centre == CentreKind::kNone && x.c.inner->alone; },
     [](const Case& x) {
       return fmt::format(
           "strategy.centre = \"none\": the workers of {} train alone and would never agree; use "
           "group or server",
           x.preset.name);
     }},
    {[](const Case& x) {
       return x.c.local_steps() && !x.c.inner->alone && !(x.c.inner->groups && x.c.inner->in_step);
     },
     [](const Case& x) {
       return fmt::format(
           "strategy.centre = \"group\" averages weights of workers that train alone or all-reduce "
           "in groups (strategy.inner alone, allreduce), not {}",
           x.c.inner->name);
     }},
    {[](const Case& x) {
       const bool in_step = x.c.local_steps() || x.c.inner->in_step;
       return !x.c.leases_work() && x.c.pace != (in_step ? PaceKind::kInStep : PaceKind::kFree);
     },
     [](const Case& x) {
       return fmt::format("strategy.pace = \"{}\": {}", x.o.pace,
                          x.c.inner->in_step || x.c.local_steps()
                              ? fmt::format("the ranks of {} advance in step", x.preset.name)
                              : fmt::format("the ranks of {} are free", x.preset.name));
     }},
    {[](const Case& x) { return x.c.centre == CentreKind::kNone && !x.c.merge->in_step; },
     [](const Case& x) {
       return fmt::format("strategy.merge = \"{}\": {} adds up {}", x.c.merge->name, x.preset.name,
                          x.c.inner->differences ? "gradients or differences" : "gradients");
     }},
    {[](const Case& x) {
       return x.c.centre == CentreKind::kNone && !Gradients(x) && !x.c.inner->differences;
     },
     [](const Case& x) {
       return fmt::format("strategy.merge = \"{}\": {} adds up gradients", x.c.merge->name,
                          x.preset.name);
     }},
    {[](const Case& x) { return x.c.local_steps() && !x.c.merge->averages; },
     [](const Case& x) {
       return fmt::format(
           "strategy.merge = \"{}\": with strategy.centre = \"group\" weights are averaged "
           "(strategy.merge = \"average\")",
           x.c.merge->name);
     }},
};

// ---- with a server

constexpr Refusal kServers[] = {
    {[](const Case& x) { return !x.c.merge->make; },
     [](const Case& x) {
       return fmt::format(
           "strategy.merge = \"{}\" belongs to sync-ps, where all start from the same weights; "
           "with a free pace use elastic, average or gradient",
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
       return "strategy.pace = \"clock\" hands out single shards to workers that have weights of "
              "their own (strategy.inner = \"alone\")";
     }},
    {[](const Case& x) { return x.c.inner->shares_memory && !Gradients(x); },
     [](const Case& x) {
       return fmt::format(
           "strategy.inner = \"hogwild\": workers that share weights send gradients to the centre "
           "(strategy.merge = \"gradient\", as dogwild); with merge {} each would send what others "
           "did, too",
           x.c.merge->name);
     }},
    {[](const Case& x) { return x.c.clocked() && (x.c.push != 1 || x.c.fetch != 1); },
     [](const Case&) -> std::string {
       return "strategy.pace = \"clock\": every shard's gradient is pushed by itself and weights "
              "are fetched when they are too old; strategy.push and strategy.fetch must be 1";
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
       return "strategy.stale = \"wait\" needs a bound to wait for (strategy.staleness)";
     }},
    {[](const Case& x) { return x.c.waits() && !x.c.merge->waits; },
     [](const Case& x) {
       return fmt::format(
           "strategy.stale = \"wait\": with strategy.merge = \"{}\" a worker's weights are its own "
           "from one meeting to the next, and all others would stand still meanwhile; use drop, or "
           "gradient or elastic",
           x.c.merge->name);
     }},
    {[](const Case& x) { return x.c.waits() && x.c.inner->shares_memory; },
     [](const Case&) -> std::string {
       return "strategy.stale = \"wait\": the workers of a group share their weights and none of "
              "them waits (inner = \"hogwild\"); use scale or drop";
     }},
    {[](const Case& x) { return x.c.waits() && Gradients(x) && x.c.fetch != x.c.push; },
     [](const Case& x) {
       return fmt::format(
           "strategy.stale = \"wait\": what is pushed is computed from one version of the weights, "
           "so they are fetched once for each push; strategy.fetch must be {} (strategy.push), not "
           "{}",
           x.c.push, x.c.fetch);
     }},
    {[](const Case& x) { return !FreePace(x) && x.c.stale != StaleKind::kWait; },
     [](const Case& x) {
       return fmt::format(
           "strategy.stale = \"{}\": a clock or a round (strategy.pace) waits for what would be "
           "too stale, so strategy.stale is wait there",
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
    // Several servers agree on nothing but an order: what one does to its part of the parameters
    // must not depend on the others'.
    {[](const Case& x) { return ManyServers(x) && (!Gradients(x) || !FreePace(x)); },
     [](const Case& x) {
       return fmt::format(
           "strategy.servers = {}: a centre lies on several servers where gradients are applied as "
           "they arrive (strategy.merge = \"gradient\", pace = \"free\": downpour); with merge {} "
           "and the pace of {} workers or clocks need the whole of it at one moment",
           x.o.servers, x.c.merge->name, x.preset.name);
     }},
    {[](const Case& x) { return ManyServers(x) && x.c.waits(); },
     [](const Case& x) {
       return fmt::format(
           "strategy.servers = {}: which push may count, the first server would have to say before "
           "the others have their partitions; strategy.stale is scale or drop, not wait",
           x.o.servers);
     }},
    {[](const Case& x) { return ManyServers(x) && x.c.broadcasts; },
     [](const Case& x) {
       return fmt::format(
           "strategy.servers = {}: this strategy's server broadcasts the whole centre; downpour "
           "fetches it, from several servers too",
           x.o.servers);
     }},
};

// ---- what else the recipe asks for

constexpr Refusal kOthers[] = {
    {[](const Case& x) { return x.c.deterministic && !EqualBits(x.c); },
     [](const Case& x) {
       return fmt::format(
           "trainer.deterministic: the result of strategy {} depends on who comes first; use a "
           "strategy that advances in step (allreduce, sync-ps) or ssp with strategy.staleness = 0",
           x.preset.name);
     }},
    {[](const Case& x) { return x.c.local_steps() && (x.c.deterministic || x.o.sync_batch_norm); },
     [](const Case& x) {
       return fmt::format(
           "strategy {}: workers step alone, so the result depends on their number "
           "(trainer.deterministic) and batch-norm sees one worker's samples "
           "(strategy.sync_batch_norm)",
           x.preset.name);
     }},
    {[](const Case& x) { return x.c.deterministic && !AddsInShardOrder(x.o.algorithm); },
     [](const Case& x) {
       return fmt::format(
           "strategy.algorithm = \"{}\" adds in an order that depends on the number of ranks; "
           "trainer.deterministic wants auto, shared or chain",
           x.o.algorithm);
     }},
    {[](const Case& x) { return x.c.deterministic && x.o.wire != "f32"; },
     [](const Case& x) {
       return fmt::format(
           "strategy.wire = \"{}\" rounds at every hop, so the bits depend on the number of ranks; "
           "trainer.deterministic wants f32",
           x.o.wire);
     }},
    {[](const Case& x) { return x.o.sync_batch_norm && (x.c.deterministic || !x.c.in_step()); },
     [](const Case&) -> std::string {
       return "strategy.sync_batch_norm needs a strategy in step (allreduce, sync-ps, bsp) "
              "and adds in an order that trainer.deterministic does not allow";
     }},
    {[](const Case& x) { return x.c.deterministic && x.c.in_step() && !Gradients(x); },
     [](const Case&) -> std::string {
       return "trainer.deterministic: weight differences agree with gradients to rounding only; "
              "use strategy.merge = \"gradient\"";
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
       return fmt::format("strategy.groups = {} for {} (transport.ranks)", x.c.groups,
                          Counted(x.c.workers(), "worker"));
     }},
    {[](const Case& x) { return x.c.inner->one_process && !x.scene.one_process; },
     [](const Case& x) {
       return fmt::format(
           "strategy {}: its workers are threads of one process (--transport threads)",
           x.preset.name);
     }},
    {[](const Case& x) {
       return x.c.inner->shares_memory && !x.c.leases_work() && !x.scene.shared_memory;
     },
     [](const Case& x) {
       return fmt::format("strategy {}: its workers share memory (--transport threads, shm)",
                          x.preset.name);
     }},
    {[](const Case& x) {
       return x.c.centre == CentreKind::kNone && !Gradients(x) && x.scene.optimizer &&
              !PlainUpdate(*x.scene.optimizer);
     },
     [](const Case&) -> std::string {
       return "strategy.merge = \"difference\" adds up what workers did to their weights, which is "
              "right only for plain SGD: set optimizer.name=sgd optimizer.momentum=0 "
              "optimizer.weight_decay=0 trainer.clip=0, or strategy.merge=gradient";
     }},
    {[](const Case& x) {
       return ManyServers(x) && x.scene.optimizer && x.scene.optimizer->clip > 0;
     },
     [](const Case& x) {
       return fmt::format(
           "strategy.servers = {}: trainer.clip needs the norm of all gradients, and each server "
           "has a partition of them; set trainer.clip = 0",
           x.o.servers);
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
  RefuseFirst(kChoices, x);
  if (choice.leases_work()) RefuseFirst(kServers, x);
  RefuseFirst(kOthers, x);
}

}  // namespace trireme
