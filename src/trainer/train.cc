#include "trainer/train.h"

#include "base/denormals.h"
#include "record/checkpoint.h"
#include "strategy/presets.h"
#include "trainer/model_file.h"
#include "trainer/worker.h"
#include "transport/threads/run.h"

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

}  // namespace

Outcome Train(const Job& job, RunDirectory& directory, Progress& progress, const Signals& signals,
              const Log& log) {
  const DenormalsOff denormals_off;  // for all ranks and their teams: they start below
  const Start start = FindStart(job, directory, log);
  const StateReader* resume = start.found ? &start.found->checkpoint.state() : nullptr;
  directory.DropMetricsAfter(start.found ? start.found->checkpoint.step() : 0);

  Outcome outcome;  // written by the rank that records
  RunRanks(job.recipe.transport.ranks, job.recipe.transport.timeout_s, [&](World& world) {
    const StrategySetup setup{job.recipe.strategy, job.plan, job.layout,
                              job.recipe.trainer.deterministic};
    if (world.rank() < job.servers) {
      const auto server = MakeServer(setup, world, start.state);
      if (resume) server->Load(*resume);
      server->Run();
      return;
    }
    Rig rig = job.make_rig(job.threads_per_rank);  // before the strategy, whose memory is on it
    const auto strategy = MakeWorker(setup, world);
    std::optional<Recorder> recorder;
    if (strategy->Records()) recorder.emplace(job, directory, progress);
    Worker worker(job, world, rig, *strategy, recorder ? &*recorder : nullptr, signals);
    const Ending own = worker.Run(start.state, resume);
    if (recorder) outcome = {own, recorder->summary()};
  });
  return outcome;
}

}  // namespace trireme
