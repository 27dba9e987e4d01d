#pragma once
#include <optional>
#include <string>

#include "base/log.h"
#include "launch/launcher.h"
#include "record/json.h"
#include "trainer/job.h"

namespace trireme {

// What a run is to begin with.
struct RunRequest {
  Recipe recipe;                        // trainer.device names what computes (SettleDevice)
  OpenKeys open = {};                   // of a run without a recipe
  bool begun = false;                   // resumed: its weights are in a checkpoint
  std::string run = {};                 // of which; empty: nothing is resumed
  bool only_plan = false;               // nothing will be trained
  std::optional<DataSet> samples = {};  // that are there already; else data.source is opened
};

// The job of the ranks that the launcher knows, with the weights that trainer.init names.
Job PrepareRun(RunRequest request, const Launcher& launcher, const Log& log);

// What the run's directory tells of this start: by which command, of which build, where.
Json StartLine(const std::string& command, const Job& job);

}  // namespace trireme
