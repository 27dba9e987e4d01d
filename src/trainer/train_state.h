#pragma once
#include <cstdint>
#include <optional>

#include "base/state_io.h"
#include "optimizer/schedule.h"
#include "recipe/trainer_options.h"

namespace trireme {

// Why a run is over.
enum class Ending { kDone, kTarget, kPatience, kConverged, kSignal, kTested };
const char* ReasonOf(Ending ending);  // in a word, as files name it

// How far a run is: what a checkpoint holds besides weights, optimizer and strategy.
struct TrainState {
  int64_t step = 0;  // steps done
  int64_t epochs_done = 0;
  double seconds = 0;        // of the run, over all its lives
  double train_seconds = 0;  // without evaluation and checkpoints
  double epoch_began_s = 0;  // the present epoch, in train_seconds
  double loss_sum = 0;       // of the present epoch, over its samples so far
  double correct = 0;
  int64_t samples = 0;
  int64_t all_samples = 0;  // of the run
  double train_loss = 0;    // of the last whole epoch, or of the part that there was
  double best_score = -1;   // of the evaluations (Findings::Judged)
  int64_t best_epoch = 0;
  int64_t best_step = -1;  // -1: no evaluation yet
  int64_t evaluations_since_best = 0;
  int64_t rate_falls = 0;        // on a plateau (optimizer/schedule.h)
  int64_t flat_evaluations = 0;  // since the best, or since the rate fell last

  // Counts an evaluation; a reason to end the run, if it is one. Higher scores are better; one that
  // is not a number is no better than any.
  std::optional<Ending> Judge(double score, const TrainerOptions& options);
  // The same for a run that was killed before its end.
  std::optional<Ending> EndingFor(const TrainerOptions& options) const;
  // After an evaluation was counted: does the rate fall?
  bool RateFalls(const Schedule& schedule);
  // At the end of an epoch: every so many, and where the evaluation was the best so far.
  bool CheckpointIsDue(const TrainerOptions& options) const;
  // Its checkpoint is lost: the best of the evaluations to come counts.
  void ForgetBest();

  void Save(StateWriter& writer) const;
  static TrainState Load(const StateReader& reader);
};

}  // namespace trireme
