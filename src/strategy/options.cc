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
  t.Add("name", &StrategyOptions::name, OneOf(names), kRun, "how replicas agree on weights");
  t.Add("algorithm", &StrategyOptions::algorithm, OneOf(AlgorithmNames()), kJob,
        "allreduce and groups: how gradients are summed; device: by the ranks' cards among "
        "themselves (NCCL); shared: in place, in memory that all ranks address; auto: the first of "
        "these that is possible, otherwise what is fastest by a measured model of the links");
  t.Add("wire", &StrategyOptions::wire, OneOf({"f32", "bf16"}), kJob,
        "allreduce and groups: how gradients travel; bf16 halves the bytes and rounds every "
        "partial sum");
  t.Add(
      "route", &StrategyOptions::route, OneOf(RouteWords()), kJob,
      "sync-ps: how sums travel: from worker to worker, rank 0 at the end (chain), or each worker "
      "sends its own straight to rank 0 and gets the weights straight from it (star); equal bits");
  t.Add("overlap", &StrategyOptions::overlap, OneOf(OverlapWords()), kJob,
        "sync-ps: which communication goes on while workers compute: gradients during backward "
        "(reduce), new weights during the next forward (broadcast), both or none; equal bits");
  t.Add("balance", &StrategyOptions::balance, OneOf({"equal", kByRate}), kJob,
        "in step: workers take equally many shards of a step (equal), or as many as their speed in "
        "the last epoch says (rate); needs several shards per worker (trainer.shards)");
  t.Add("inner", &StrategyOptions::inner, OneOf(NamesOf(InnerKinds())), kJob,
        "how replicas advance inside a step; auto, here and for the next three: what the strategy "
        "sets");
  t.Add("centre", &StrategyOptions::centre, OneOf(CentreWords()), kJob,
        "where common weights are kept besides those of the replicas");
  t.Add("merge", &StrategyOptions::merge, OneOf(NamesOf(MergeKinds())), kJob,
        "how a worker and the centre (or sync-ps' server) combine; difference needs SGD without "
        "momentum, weight decay and clipping");
  t.Add("pace", &StrategyOptions::pace, OneOf(PaceWords()), kJob,
        "with a centre, when the server applies pushes: on arrival (free), when a step's shards "
        "are complete (clock), when every worker has pushed (round)");
  t.Add("sync_batch_norm", &StrategyOptions::sync_batch_norm, Any(), kJob,
        "batch-norm over the samples of all workers instead of each shard's; costs two small sums "
        "per layer and needs one shard per worker");
  t.Add("bucket_mb", &StrategyOptions::bucket_mb, Above(0) && AtMost(1024), kJob,
        "allreduce: megabytes of gradients that are summed at a time while backward continues");
  t.Add("period", &StrategyOptions::period, AtLeast(-1), kJob,
        "merges of weights: local steps between meetings with the centre; 0: once an epoch; -1: "
        "the strategy's (10; async-ps: 0; pgas: 2; hogwild, dogwild in "
        "memory, allreduce-weights: 1)");
  t.Add("outer_lr", &StrategyOptions::outer_lr, Above(0) && AtMost(10), kJob,
        "local-sgd: how far the anchor moves towards the workers' mean at a meeting");
  t.Add("servers", &StrategyOptions::servers, AtLeast(1) && AtMost(64), kJob,
        "number of servers: the first ranks, each of which holds a partition of the centre; more "
        "than one only where pushes are applied on arrival (pace free)");
  t.Add("groups", &StrategyOptions::groups, AtLeast(0), kJob,
        "inner allreduce or hogwild with a centre: groups of workers that sum their gradients or "
        "share weights; 0: 2");
  t.Add("neighbours", &StrategyOptions::neighbours, AtLeast(1) && AtMost(64), kJob,
        "merge gossip and neighbours: others, drawn at random, into whose inboxes a worker writes "
        "its "
        "weights at a meeting");
  t.Add("push", &StrategyOptions::push, AtLeast(0), kJob,
        "merge gradient: steps between pushes of the summed gradients; 0: the strategy's");
  t.Add("fetch", &StrategyOptions::fetch, AtLeast(0), kJob,
        "merge gradient: steps between fetches of newer weights; 0: the strategy's");
  t.Add("alpha", &StrategyOptions::alpha, Between(0, 1), kJob,
        "elastic: fraction of the distance given up at a meeting; 0: 0.9 / clients. average: "
        "weight of a client that did its share; 0: 1 / workers. gossip, neighbours: fraction of "
        "the distance to a neighbour; 0: 1/2");
  t.Add("outer_momentum", &StrategyOptions::outer_momentum, AtLeast(0) && Below(1), kJob,
        "local-sgd, federated: fraction of the centre's velocity kept from meeting to meeting");
  t.Add("staleness", &StrategyOptions::staleness, AtLeast(-1), kJob,
        "how many updates (pace clock: steps) old the weights behind an update may be; -1: the "
        "strategy's (ssp: 3), otherwise unlimited");
  t.Add("stale", &StrategyOptions::stale, OneOf(StaleWords()), kJob,
        "what happens to an update beyond strategy.staleness: workers wait so that there is none "
        "(wait), it counts less (scale), its positions are leased again (drop)");
  t.Add("snapshot_s", &StrategyOptions::snapshot_s, Above(0), kJob,
        "with a server: seconds between its snapshots; if it dies, centre and leases return to the "
        "last one");
}

}  // namespace trireme
