#include "strategy/presets.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr StrategyPreset kPresets[] = {
    {.name = "allreduce",
     .help = "gradients are summed over all ranks in every step, bucket by bucket during backward "
             "(Horovod, DDP), or in shard order with trainer.deterministic",
     .inner = "allreduce"},
    {.name = "sync-ps",
     .help = "rank 0 holds the weights and does not train: gradients, or weight differences "
             "(strategy.merge), travel to it in every step and new weights come back",
     .inner = "server"},
    {.name = "bsp",
     .help = "worker threads bring their gradients to a cyclic barrier, after which an aggregator "
             "adds them up and moves the parent model (bulk-synchronous; the broker is not a rank)",
     .inner = "broker"},
    {.name = "async-ps",
     .help =
         "workers train alone, push their weights once per epoch (strategy.period) and continue "
         "immediately with the newest weights that the server has broadcast; the server takes "
         "the mean of its weights and each push (strategy.merge halve, average) or applies "
         "gradients; no worker ever waits",
     .inner = "alone",
     .centre = "server",
     .merge = "halve",
     .pace = "free",
     .period = 0,
     .broadcasts = true},
    {.name = "downpour",
     .help = "workers push the sum of their gradients every strategy.push steps and fetch weights "
             "every strategy.fetch steps; the server runs the optimizer (Dean et al. 2012)",
     .inner = "alone",
     .centre = "server",
     .merge = "gradient",
     .pace = "free",
     .push = 2,
     .fetch = 2},
    {.name = "easgd",
     .help = "workers train alone; every strategy.period steps worker and centre pull each other "
             "closer; rank 0 holds the centre (Zhang, Choromanska, LeCun 2015)",
     .inner = "alone",
     .centre = "server",
     .merge = "elastic",
     .pace = "free"},
    {.name = "ssp",
     .help = "workers take shards of steps and use weights at most strategy.staleness steps old; "
             "with 0 this is allreduce through a server (Ho et al. 2013)",
     .inner = "alone",
     .centre = "server",
     .merge = "gradient",
     .pace = "clock",
     .staleness = 3},
    {.name = "mpi-ps",
     .help = "workers all-reduce inside each of strategy.groups groups, and every strategy.period "
             "steps the groups meet the server (Mamidala et al. 2018)",
     .inner = "allreduce",
     .centre = "server",
     .merge = "elastic",
     .pace = "free"},
    {.name = "hybrid",
     .help = "workers all-reduce inside each of strategy.groups groups, and every strategy.period "
             "steps the first of each group pulls at a centre in remote memory, on a thread beside "
             "its own (ShmCaffe-H; Ahn et al. 2018)",
     .inner = "allreduce",
     .centre = "memory",
     .merge = "elastic",
     .pace = "free"},
    {.name = "pgas",
     .help = "workers train alone; every strategy.period steps each writes its weights into the "
             "memory of strategy.neighbours others and mixes in what it finds in its own; with "
             "strategy.merge = neighbours only if its steps lead nearer to that (Keuper, Pfreundt "
             "2015)",
     .inner = "alone",
     .centre = "memory",
     .merge = "gossip",
     .pace = "free",
     .period = 2},
    {.name = "dogwild",
     .help =
         "the workers of each of strategy.groups groups share weights without locks, as in "
         "hogwild; they push gradients to the server and fetch its weights now and then, or add "
         "their moves to a centre in remote memory (Noel, Osindero 2014)",
     .inner = "hogwild",
     .centre = "server",
     .merge = "gradient",
     .pace = "free",
     .period = 1,
     .memory_merge = "moves"},
    {.name = "federated",
     .help = "workers train alone for strategy.period steps, then the server averages the weights "
             "of all present, weighted by their samples (McMahan et al. 2017)",
     .inner = "alone",
     .centre = "server",
     .merge = "average",
     .pace = "round"},
    {.name = "hogwild",
     .help = "workers read and write one set of weights without locks (Recht, Re, Wright, Niu "
             "2011): threads, or processes that share memory; with strategy.centre = memory any "
             "processes, each of which adds its own moves to weights in remote memory",
     .inner = "hogwild",
     .pace = "free",
     .period = 1,
     .memory_inner = "alone",
     .memory_merge = "moves"},
    {.name = "local-sgd",
     .help = "workers train alone; every strategy.period steps all take the mean of their weights "
             "(federated averaging, McMahan et al. 2017; strategy.outer_momentum: SlowMo)",
     .inner = "alone",
     .centre = "group",
     .merge = "average"},
    {.name = "allreduce-weights",
     .help = "every worker updates its own weights and all take their mean after every step: "
             "local-sgd with strategy.period = 1 (MPI_Allreduce of packed weights)",
     .inner = "alone",
     .centre = "group",
     .merge = "average",
     .period = 1},
};

}  // namespace

std::span<const StrategyPreset> StrategyPresets() { return kPresets; }

const StrategyPreset& FindPreset(std::string_view name) {
  std::vector<std::string> names;
  for (const StrategyPreset& preset : kPresets) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw UsageError("strategy.name = \"{}\" is unknown{}", name, DidYouMean(name, names));
}

}  // namespace trireme
