#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "study/sweep_plan.h"

namespace trireme {

// A sweep's folder:
//
//   plan.json          what is trained: another plan is refused
//   runs/c003-r2       the run of combination 3, second repetition, with .log (what it said) and,
//                      if it failed, .error (why)
//
// A run that has a summary or failed is done. What was interrupted is begun again, so that its time
// is that of an undisturbed run.

// One repetition of a combination. `seconds` is the training time of its epochs as summary.json has
// it (train_seconds): no start of processes, no evaluation, no checkpoints.
struct SweepRun {
  std::string folder;
  std::string error;  // the rest is empty then
  double seconds = 0;
  double samples_per_second = 0;
  std::optional<double> test_accuracy, test_rmse, test_loss;
  std::optional<double> validation_accuracy, validation_rmse, validation_loss;
  std::optional<double> peak_bytes;  // of the process that recorded the run
};

struct SweepRow {
  Combination combination;
  std::vector<SweepRun> runs;  // those that are done, in the order of repetitions
};

struct SweepContext {
  std::string out;
  bool retry = false;             // failed runs count as not done
  bool keep_checkpoints = false;  // else they go when a run is done: a sweep is after numbers
  // Trains with these words on so many ranks, prints to `log`, gives the exit code.
  std::function<int(const std::vector<std::string>& words, const std::string& log, int ranks)>
      train;
  std::function<int()> stopped;  // an exit code if somebody wants to stop, else 0
  std::function<void(const std::string& line)> say;
  std::function<bool()> enough = {};  // no further run is begun
  int parallel = 1;                   // runs at once, each with its share of the processors
};

// Does what is left to do, all combinations once, then again. 0, or the code with which it was
// stopped. One sweep at a time works in a folder. UsageError if it belongs to another plan.
int RunSweep(const SweepPlan& plan, const SweepContext& context);

// What is done so far, a row for each combination.
std::vector<SweepRow> ReadSweep(const SweepPlan& plan, const std::string& out);

}  // namespace trireme
