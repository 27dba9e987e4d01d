#include "trainer/prepare.h"

#include "base/error.h"
#include "base/machine.h"
#include "base/version.h"
#include "model/given_weights.h"
#include "record/checkpoint.h"
#include "record/timestamp.h"
#include "trainer/recorder.h"

namespace trireme {

namespace {

// The layers that a server does not hand out, for each rank of a resumed run: as its checkpoints
// have them, or where there is none as it began.
void TakeFrozen(const RunRequest& request, Job& job, const Log& log) {
  if (request.run.empty() || job.layout.frozen == 0 || !job.strategy.leases_work()) return;
  // Every checkpoint has them; a damaged one is reported where the run is opened.
  const auto saved = OpenLatestCheckpoint(request.run + "/checkpoints");
  const std::string& init = job.recipe.trainer.init;
  if (!saved && init.empty()) return;
  TakeWeights(saved ? saved->checkpoint.files().model : FindWeights(init, log),
              saved ? "" : job.recipe.trainer.init_except, job.graph, job.layout, job.initial_state,
              log);
}

}  // namespace

Job PrepareRun(RunRequest request, const Launcher& launcher, const Log& log) {
  std::string& init = request.recipe.trainer.init;
  const bool takes_weights = !init.empty() && !request.begun;
  if (const std::string& except = request.recipe.trainer.init_except;
      init.empty() && !except.empty()) {
    throw UsageError(
        "trainer.init_except = \"{}\" leaves layers of given weights out, and trainer.init gives "
        "none; "
        "set --init, or unset it",
        except);
  }
  if (takes_weights) init = FindWeights(init, log);
  // What no device can run is refused before one is looked for.
  const bool trains = launcher.first() + launcher.local() > ChooseStrategy(request.recipe).servers;
  MakeBackend backend = BackendOf(request.recipe, trains);
  const bool weights = !request.only_plan || takes_weights;
  Job job = PrepareJob(request.recipe, std::move(backend), launcher.neighbours(), weights,
                       request.open, std::move(request.samples));
  job.given_weights = !init.empty();
  if (request.begun && !request.only_plan) TakeFrozen(request, job, log);
  if (!takes_weights) return job;
  TakeWeights(init, job.recipe.trainer.init_except, job.graph, job.layout, job.initial_state, log);
  const std::string wanted = NormalizationOfWeights(init, job.recipe.model.name);
  if (launcher.holds(kRecordingRank) && !wanted.empty() && wanted != job.recipe.data.normalize) {
    log.Warn("init", "these weights expect data.normalize={}; here it is {}", wanted,
             job.recipe.data.normalize);
  }
  return job;
}

Json StartLine(const std::string& command, const Job& job) {
  Json line = Json::Object();
  line.Add("command", command).Add("machine", MachineText(job)).Add("version", Version());
  line.Add("commit", Commit()).Add("started_at", UtcNow()).Add("host", ReadMachine().host);
  line.Add("device", job.recipe.trainer.device).Add("precision", job.recipe.trainer.precision);
  if (job.recipe.data.on_error == "skip") line.Add("left_out", int64_t(job.data.left_out.size()));
  return line;
}

}  // namespace trireme
