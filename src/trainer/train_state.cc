#include "trainer/train_state.h"

#include <cmath>

namespace trireme {

const char* ReasonOf(Ending ending) {
  switch (ending) {
    case Ending::kTarget:
      return "target";
    case Ending::kPatience:
      return "patience";
    case Ending::kConverged:
      return "converged";
    case Ending::kSignal:
      return "signal";
    default:
      return "done";
  }
}

std::optional<Ending> TrainState::Judge(double score, const TrainerOptions& options) {
  if (score > best_score || (best_step < 0 && !std::isnan(score))) {
    best_score = score;
    best_epoch = epochs_done;
    best_step = step;
    evaluations_since_best = flat_evaluations = 0;
  } else {
    ++evaluations_since_best;
    ++flat_evaluations;
  }
  if (options.target_accuracy > 0 && score >= options.target_accuracy) return Ending::kTarget;
  return EndingFor(options);
}

std::optional<Ending> TrainState::EndingFor(const TrainerOptions& options) const {
  const double target = options.target_accuracy;
  if (target > 0 && best_step == step && best_score >= target) return Ending::kTarget;
  if (options.patience && evaluations_since_best >= options.patience) return Ending::kPatience;
  return {};
}

bool TrainState::RateFalls(const Schedule& schedule) {
  if (!schedule.waits()) flat_evaluations = 0;  // a resumed run may have another schedule
  if (!schedule.FallsAfter(flat_evaluations)) return false;
  flat_evaluations = 0;
  ++rate_falls;
  return true;
}

bool TrainState::CheckpointIsDue(const TrainerOptions& options) const {
  const int every = options.checkpoint_epochs;
  if (every && epochs_done % every == 0) return true;
  return options.KeepsBest() && best_step == step;
}

void TrainState::ForgetBest() {
  best_score = -1;
  best_epoch = 0;
  best_step = -1;
  evaluations_since_best = 0;
}

void TrainState::Save(StateWriter& writer) const {
  writer.Int("step", step);
  writer.Int("epochs_done", epochs_done);
  writer.Real("seconds", seconds);
  writer.Real("train_seconds", train_seconds);
  writer.Real("epoch_began_s", epoch_began_s);
  writer.Real("epoch_loss_sum", loss_sum);
  writer.Real("epoch_correct", correct);
  writer.Int("epoch_samples", samples);
  writer.Int("all_samples", all_samples);
  writer.Real("train_loss", train_loss);
  writer.Real("best_accuracy", best_score);
  writer.Int("best_epoch", best_epoch);
  writer.Int("best_step", best_step);
  writer.Int("evaluations_since_best", evaluations_since_best);
  writer.Int("rate_falls", rate_falls);
  writer.Int("flat_evaluations", flat_evaluations);
}

TrainState TrainState::Load(const StateReader& reader) {
  TrainState at{.step = reader.Int("step"),
                .epochs_done = reader.Int("epochs_done"),
                .seconds = reader.Real("seconds"),
                .train_seconds = reader.Real("train_seconds"),
                .epoch_began_s = reader.Real("epoch_began_s"),
                .loss_sum = reader.Real("epoch_loss_sum"),
                .correct = reader.Real("epoch_correct"),
                .samples = reader.Int("epoch_samples"),
                .all_samples = reader.Int("all_samples"),
                .train_loss = reader.Real("train_loss"),
                .best_score = reader.Real("best_accuracy"),
                .best_epoch = reader.Int("best_epoch"),
                .evaluations_since_best = reader.Int("evaluations_since_best")};
  if (reader.Has("best_step")) {
    at.best_step = reader.Int("best_step");
  } else {
    at.ForgetBest();  // of a version that did not keep it
  }
  if (reader.Has("rate_falls")) {  // since there is a plateau
    at.rate_falls = reader.Int("rate_falls");
    at.flat_evaluations = reader.Int("flat_evaluations");
  }
  return at;
}

}  // namespace trireme
