#include "strategy/options.h"

#include "strategy/choice.h"
#include "strategy/inner/algorithm.h"
#include "strategy/presets.h"

namespace trireme {
namespace {

template <class Kind>
std::vector<std::string> NamesOf(std::span<const Kind> kinds) {
  std::vector<std::string> words{"auto"};
  for (const Kind& kind : kinds) words.push_back(kind.name);
  return words;
}

}  // namespace

void Describe(OptionTable<StrategyOptions>& t) {
  using enum Binds;
  std::vector<std::string> names;
  for (const StrategyPreset& preset : StrategyPresets()) names.push_back(preset.name);
  t.Add("name", &StrategyOptions::name, OneOf(names), kRun, "how replicas agree");
  t.Add("algorithm", &StrategyOptions::algorithm, OneOf(AlgorithmNames()), kJob,
        "allreduce: how gradients are summed; shared: where they lie, in memory that all ranks "
        "address; auto: shared where that is possible, else by a measured model of the links");
  t.Add("wire", &StrategyOptions::wire, OneOf({"f32", "bf16"}), kJob,
        "allreduce: how gradients travel; bf16 halves the bytes and rounds every partial sum");
  t.Add("inner", &StrategyOptions::inner, OneOf(NamesOf(InnerKinds())), kJob,
        "how replicas advance inside a step; auto: as the strategy has it, and so for the next "
        "three");
  t.Add("centre", &StrategyOptions::centre, OneOf(CentreWords()), kJob,
        "where common weights live besides the replicas'");
  t.Add("merge", &StrategyOptions::merge, OneOf(NamesOf(MergeKinds())), kJob,
        "what a worker and the centre (or sync-ps' server) do to each other; differences need SGD "
        "without momentum, weight decay and clipping");
  t.Add("pace", &StrategyOptions::pace, OneOf(PaceWords()), kJob,
        "with a centre: when the server applies what workers push: at once (free), when a step's "
        "shards are complete (clock), when everybody has pushed (round)");
  t.Add("sync_batch_norm", &StrategyOptions::sync_batch_norm, Any(), kJob,
        "batch-norm over the samples of all workers, not of each shard: two small sums per layer; "
        "one shard per worker");
  t.Add("bucket_mb", &StrategyOptions::bucket_mb, Above(0) && AtMost(1024), kJob,
        "allreduce: megabytes of gradients that are summed at a time while backward goes on");
  t.Add("period", &StrategyOptions::period, AtLeast(-1), kJob,
        "merges of weights: local steps between meetings with the centre; 0: once an epoch; -1: as "
        "the strategy has it (10)");
  t.Add("outer_lr", &StrategyOptions::outer_lr, Above(0) && AtMost(10), kJob,
        "local-sgd: how far the anchor goes towards the workers' mean at a meeting");
  t.Add("servers", &StrategyOptions::servers, AtLeast(1) && AtMost(64), kJob,
        "the first ranks, which hold the centre, each a partition of the parameters; more than one "
        "where gradients are applied as they arrive (downpour)");
  t.Add("groups", &StrategyOptions::groups, AtLeast(0), kJob,
        "inner allreduce or hogwild with a centre: groups of workers that sum their gradients or "
        "share weights; 0: 2");
  t.Add("push", &StrategyOptions::push, AtLeast(0), kJob,
        "merge gradient: steps between pushes of the gradients' sum; 0: as the strategy has it");
  t.Add("fetch", &StrategyOptions::fetch, AtLeast(0), kJob,
        "merge gradient: steps after which newer weights are taken; 0: as the strategy has it");
  t.Add(
      "alpha", &StrategyOptions::alpha, Between(0, 1), kJob,
      "elastic: share of the distance given up at a meeting; 0: 0.9 / clients. average: weight of "
      "a client that did its share; 0: 1 / workers");
  t.Add("outer_momentum", &StrategyOptions::outer_momentum, AtLeast(0) && Below(1), kJob,
        "local-sgd, federated: share of the centre's velocity kept from meeting to meeting");
  t.Add("staleness", &StrategyOptions::staleness, AtLeast(-1), kJob,
        "how many updates (pace clock: steps) the weights of an update may be behind; -1: as the "
        "strategy has it (ssp: 3), else any");
  t.Add("stale", &StrategyOptions::stale, OneOf(StaleWords()), kJob,
        "what becomes of an update beyond strategy.staleness: nobody gets so far (wait), it counts "
        "less, or its positions are leased again");
  t.Add(
      "snapshot_s", &StrategyOptions::snapshot_s, Above(0), kJob,
      "with a server: seconds between its snapshots, to which centre and leases return if it dies");
}

}  // namespace trireme
