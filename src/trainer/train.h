#pragma once
#include <optional>
#include <string>

#include "base/function_ref.h"
#include "base/log.h"
#include "base/stop_notice.h"
#include "base/stop_wish.h"
#include "health/self_test.h"
#include "launch/launcher.h"
#include "record/progress.h"
#include "record/run_directory.h"
#include "trainer/job.h"
#include "trainer/recorder.h"

namespace trireme {

struct Outcome {
  Ending ending = Ending::kDone;
  Summary summary;  // empty after a signal and a self-test
  std::optional<GradientMatch> self_test;
};

// What a run has besides its job.
struct RunContext {
  RunDirectory* directory;  // of the process that holds the rank that records, else null
  Progress& progress;
  const StopWish& signals;
  const Log& log;
  Launcher& launcher;
  const Json* start_line = nullptr;  // written when the run begins; null: nothing tells of it
  StopNotice* notice = nullptr;      // if not null, told of the signals by who supervises the ranks
  std::string device = {};           // in words, logged when the run begins; empty: not
  bool show_ranks = true;            // log where the ranks run and how they sum
  // Called at the end on the rank that records, which may be another process.
  FunctionRef<void(const Outcome&)> report;
};

// The life of a run: starts the ranks, from the run's newest checkpoint if it has one, and returns
// when all have ended: 0, or the exit code of a signal that stopped it. `job.initial_state` is
// where a run without checkpoint begins. Throws UsageError where the run is longer already than the
// job asks for.
int Train(const Job& job, const RunContext& context);

// The life of a client that joins a run whose server is elsewhere: 0, or the exit code of a signal.
struct JoinContext {
  std::string meet, secret;
  const StopWish& signals;
  const Log& log;
};
int Join(const Job& job, const JoinContext& context);

}  // namespace trireme
