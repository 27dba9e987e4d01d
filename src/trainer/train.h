#pragma once
#include <optional>
#include <string>

#include "base/log.h"
#include "base/signals.h"
#include "record/progress.h"
#include "record/run_directory.h"
#include "trainer/job.h"
#include "trainer/recorder.h"

namespace trireme {

struct Outcome {
  Ending ending = Ending::kDone;
  Summary summary;  // empty after a signal
};

// The life of a run: starts the ranks, from the run's newest checkpoint if it has one, and returns
// when all have ended. `job.initial_state` is where a run without checkpoint begins.
Outcome Train(const Job& job, RunDirectory& directory, Progress& progress, const Signals& signals,
              const Log& log);

}  // namespace trireme
