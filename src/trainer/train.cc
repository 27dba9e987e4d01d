#include "trainer/train.h"

#include <algorithm>

#include "base/assert.h"
#include "base/cores.h"
#include "base/denormals.h"
#include "base/error.h"
#include "strategy/presets.h"
#include "trainer/muster.h"
#include "trainer/rank_watch.h"
#include "trainer/start.h"
#include "trainer/tags.h"
#include "trainer/tracing.h"
#include "trainer/worker.h"
#include "transport/broadcast.h"

namespace trireme {
namespace {

// What a rank places in memory that others reach: its summands, and what all have in common (a
// state, a few numbers of each rank). What is not touched takes no memory.
size_t SharedBytes(const Job& job) {
  int most = 1;
  if (job.recipe.trainer.deterministic) {
    for (int w = 0; w < job.workers(); ++w) most = std::max(most, job.MostShards(w));
  }
  constexpr size_t kPadding = 64;
  constexpr size_t kNumbers = 4096;  // of a rank
  const size_t common =
      job.layout.state * sizeof(float) + (1 + size_t(job.recipe.transport.ranks)) * kNumbers;
  return size_t(most) * (job.layout.summand * sizeof(float) + kPadding) + common;
}

int RunServer(const Site& site, const Start& start, const StrategySetup& setup, World& world) {
  const auto server = MakeServer(setup, world, start.state);
  if (start.resume()) server->Load(*start.resume());
  server->Run();
  return site.signals.ExitCode();
}

// What was measured goes into the config: a repetition needs it.
void WriteChoice(const Job& job, const Site& site, const StrategyOptions& options) {
  if (site.show_ranks) {
    site.log.Info("strategy", "algorithm {}, by measured latency and bandwidth", options.algorithm);
  }
  Recipe recipe = job.recipe;
  recipe.strategy = options;
  site.directory->WriteConfig(ConfigText(recipe));
}

int RunWorker(const Job& job, const Site& site, const Start& start, const StrategySetup& setup,
              World& world, RankWatch* watch, SpanSink* spans) {
  Rig rig = job.make_rig(job.threads_per_rank);  // before the strategy, whose memory is on it
  const auto strategy = MakeWorker(setup, world);
  std::optional<Recorder> recorder;
  if (strategy->Records()) {
    recorder.emplace(job, *site.directory, site.progress);
    if (setup.options.algorithm != job.recipe.strategy.algorithm) {
      WriteChoice(job, site, setup.options);
    }
  }
  Worker worker(job, world, rig, *strategy, recorder ? &*recorder : nullptr, site.signals, watch,
                spans);
  const Ending ending = worker.Run(start.state, start.resume());
  if (recorder) site.report({ending, recorder->summary(), worker.self_test()});
  return ending == Ending::kSignal ? worker.exit_code() : 0;
}

// The life of one rank; its exit code.
int RunRank(const Job& job, const Site& site, const Start& start, StrategyCommon* common,
            World& world) {
  const PinnedThread pinned(job.CpusOf(world.rank()));
  Group& group = world.group();
  if (world.size() > 1) {
    CheckAgreement(group, job);
    if (site.show_ranks) ShowRanks(group, job, site.log);
  }
  StrategyOptions options = job.recipe.strategy;
  const StrategySetup setup{options, job.plan, job.layout, job.recipe.trainer.deterministic,
                            common};
  options.algorithm = ResolveAlgorithm(setup, world);
  Tracing tracing(job.recipe.record, group);
  std::optional<RankWatch> watch;
  // A rank alone waits for nobody: a long step is no stall.
  if (job.in_step && world.size() > 1)
    watch.emplace(RankWatch::Setup{group, job.recipe.trainer.stall_seconds, site.log});
  try {
    const bool serves = world.rank() < job.servers && !job.in_step;
    const int status = serves ? RunServer(site, start, setup, world)
                              : RunWorker(job, site, start, setup, world, watch ? &*watch : nullptr,
                                          tracing.buffer());
    tracing.Share();
    return status;
  } catch (const std::exception& error) {
    group.Abort(error.what());  // before the watch goes, which talks to the others
    tracing.Rescue(site.log);
    const std::string verdict = watch ? watch->Verdict(error) : "";
    if (!verdict.empty()) throw Error(verdict);
    throw;
  }
}

// What the process does that holds the run's directory.
Start OpenRun(const Job& job, const Site& site) {
  Start start = FindStart(job, *site.directory, site.log);
  if (start.step() > job.plan.steps) {
    throw UsageError("{} has done {} steps already, more than the {} asked for (--epochs, --steps)",
                     site.directory->path(), start.step(), job.plan.steps);
  }
  site.directory->WriteConfig(ConfigText(job.recipe));
  site.directory->DropMetricsAfter(start.step());
  return start;
}

}  // namespace

int Train(const Job& job, const Site& site) {
  for (const auto& [key, value] : Emulated(job.recipe.emulate)) {
    site.log.Warn("emulate", "emulate.{} = {}: this run pretends", key, value);
  }
  const DenormalsOff denormals_off;  // for all ranks and their teams: they start below
  const int root = RecordingRank(job.recipe.strategy.name);
  TRIREME_ASSERT(site.crew.holds(root) == (site.directory != nullptr));
  std::optional<Start> own;
  if (site.directory) own.emplace(OpenRun(job, site));

  const StrategyPreset& preset = FindPreset(job.recipe.strategy.name);
  const auto common =
      preset.common ? preset.common(job.workers(), job.recipe.transport.timeout_s) : nullptr;
  const auto signal = [&] { return site.signals.received(); };
  return site.crew.Run({.shared_bytes = SharedBytes(job), .signal = signal}, [&](World& world) {
    if (site.crew.complete()) return RunRank(job, site, *own, common.get(), world);
    const Start shared = ShareStart(world.group(), root, job, own ? &*own : nullptr);
    const int code = RunRank(job, site, shared, common.get(), world);
    // mpirun and srun kill the others when one ends with a code like 143: not before the one that
    // records has written its checkpoint.
    if (site.crew.launched()) Barrier(world.group(), kTagMuster);
    return code;
  });
}

}  // namespace trireme
