#include "trainer/train.h"

#include <algorithm>

#include "base/denormals.h"
#include "base/error.h"
#include "record/checkpoint.h"
#include "strategy/presets.h"
#include "trainer/model_file.h"
#include "trainer/worker.h"

namespace trireme {
namespace {

// Where a life of the run begins.
struct Start {
  std::optional<FoundCheckpoint> found;
  std::vector<float> loaded;  // of the checkpoint
  std::span<const float> state;
};

Start FindStart(const Job& job, const RunDirectory& directory, const Log& log) {
  Start start{.found = OpenLatestCheckpoint(directory.checkpoints()), .state = job.initial_state};
  if (!start.found) return start;
  if (!start.found->warning.empty()) log.Warn("resume", "{}", start.found->warning);
  start.loaded = job.initial_state;
  ReadModel(job.graph, job.layout, start.found->checkpoint.model(), start.loaded);
  start.state = start.loaded;
  return start;
}

// What a rank places in memory that others reach: its summands.
size_t SharedBytes(const Job& job) {
  int most = 1;
  if (job.recipe.trainer.deterministic) {
    for (int w = 0; w < job.workers(); ++w) most = std::max(most, job.MostShards(w));
  }
  constexpr size_t kPadding = 64;
  return size_t(most) * (job.layout.summand * sizeof(float) + kPadding);
}

// The life of one rank; its exit code.
int RunRank(const Job& job, const Site& site, const Start& start, StrategyCommon* common,
            World& world) {
  const StateReader* resume = start.found ? &start.found->checkpoint.state() : nullptr;
  const StrategySetup setup{job.recipe.strategy, job.plan, job.layout,
                            job.recipe.trainer.deterministic, common};
  if (world.rank() < job.servers && !job.in_step) {
    const auto server = MakeServer(setup, world, start.state);
    if (resume) server->Load(*resume);
    server->Run();
    return site.signals.ExitCode();
  }
  Rig rig = job.make_rig(job.threads_per_rank);  // before the strategy, whose memory is on it
  const auto strategy = MakeWorker(setup, world);
  std::optional<Recorder> recorder;
  if (strategy->Records()) recorder.emplace(job, site.directory, site.progress);
  Worker worker(job, world, rig, *strategy, recorder ? &*recorder : nullptr, site.signals);
  const Ending ending = worker.Run(start.state, resume);
  if (recorder) site.report({ending, recorder->summary()});
  return ending == Ending::kSignal ? worker.exit_code() : 0;
}

}  // namespace

int Train(const Job& job, const Site& site) {
  const DenormalsOff denormals_off;  // for all ranks and their teams: they start below
  const Start start = FindStart(job, site.directory, site.log);
  if (start.found && start.found->checkpoint.step() > job.plan.steps) {
    throw UsageError("{} has done {} steps already, more than the {} asked for (--epochs, --steps)",
                     site.directory.path(), start.found->checkpoint.step(), job.plan.steps);
  }
  site.directory.WriteConfig(site.config);
  site.directory.DropMetricsAfter(start.found ? start.found->checkpoint.step() : 0);

  const StrategyPreset& preset = FindPreset(job.recipe.strategy.name);
  const auto common =
      preset.common ? preset.common(job.workers(), job.recipe.transport.timeout_s) : nullptr;
  const auto signal = [&] { return site.signals.received(); };
  return site.crew.Run({.shared_bytes = SharedBytes(job), .signal = signal}, [&](World& world) {
    return RunRank(job, site, start, common.get(), world);
  });
}

}  // namespace trireme
