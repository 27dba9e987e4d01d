// What a worker leaves: its checkpoints, and the end of the run.
#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "flat/staging.h"
#include "strategy/step/tags.h"
#include "trainer/worker.h"
#include "transport/collective/broadcast.h"

namespace trireme {

void Worker::SaveCheckpoint() {
  DrainStepper();
  if (!takes_part_) return;  // the others go on
  owed_ = !strategy_.Agreed();
  if (!unsaved_ || owed_) return;
  unsaved_ = false;
  // Evaluated between two meetings, the best could not be saved at once.
  if (job_.recipe.trainer.KeepsBest() && at_.best_step > saved_step_) at_.best_step = at_.step;
  saved_step_ = at_.step;
  const Stopwatch pause;
  stepper_.Pause();
  observer_.Tell(Phase::kCheckpoint, at_.step);
  TakeSnapshot();
  if (recorder_) {
    at_.seconds = seconds_before_ + clock_.seconds();
    at_.train_seconds = TrainSeconds();
    const std::vector<float> state = SnapshotOnHost();
    recorder_->Checkpoint(state, at_, FaultOf(state), [&](StateWriter& writer) {
      strategy_.Save(stepper_.replica(), writer);
      if (average_) SaveOwn(writer);
    });
  }
  AddPause(pause.seconds(), SpanKind::kCheckpoint);
}

// After TakeSnapshot: what the average that the model's file holds is made of.
void Worker::SaveOwn(StateWriter& writer) {
  std::vector<float> own(job_.layout.trained());
  flat::GetNow(stepper_.queue(), stepper_.replica().state, own);
  writer.Tensor(kOwnState, std::array{int64_t(own.size())}, own);
}

std::vector<float> Worker::SnapshotOnHost() {
  std::vector<float> host(snapshot_.slice().size);
  flat::GetNow(stepper_.queue(), snapshot_, host);
  return host;
}

std::string Worker::LossFault() const {
  return fmt::format("the loss has not been finite since step {}", diverged_since_);
}

// Only the rank that records asks: another one's loss may be its own.
std::string Worker::FaultOf(std::span<const float> state) const {
  if (diverged_since_ >= 0) return LossFault();
  return recorder_->FaultOf(state, at_, evaluated_step_ == at_.step ? &*findings_ : nullptr);
}

// The run ends within an epoch: a line for the part of it, which a resumed run does without.
void Worker::RecordPart() {
  EpochRecord record = MeasureEpoch(double(at_.step) / double(job_.plan.steps_per_epoch()));
  findings_->AddTo(record);
  recorder_->Epoch(record);
}

// Patience has run out: the snapshot becomes the best checkpoint, and is evaluated again; false if
// it is lost. In step everyone takes part.
bool Worker::ReturnToBest() {
  std::optional<Recorder::Saved> best;
  if (recorder_) best = recorder_->ReturnToBest(at_);
  int64_t found = best.has_value();
  std::vector<float> state = best ? std::move(best->state) : std::vector<float>(job_.layout.state);
  if (all_ && all_->size() > 1) {
    observer_.Tell(Phase::kScore, at_.step);
    Broadcast(world_.group(), kTagStart, 0, std::as_writable_bytes(std::span(&found, 1)));
    if (found) Broadcast(world_.group(), kTagStart, 0, std::as_writable_bytes(std::span(state)));
  }
  if (!found) {
    at_.ForgetBest();
    if (findings_) at_.Judge(findings_->Judged(), job_.recipe.trainer);
    return false;
  }
  if (best) at_.train_loss = best->at.train_loss;
  flat::PutNow(stepper_.queue(), state, snapshot_);
  EvaluateSnapshot();
  return true;
}

void Worker::Finish(Ending ending) {
  DrainStepper();
  strategy_.End(stepper_.replica());
  if (!takes_part_) return;
  at_.train_seconds = TrainSeconds();
  const bool returned = ending == Ending::kPatience && ReturnToBest();
  if (!returned) {
    unsaved_ |= !all_;  // the others' last updates moved the weights
    SaveCheckpoint();
  }
  if (ending != Ending::kSignal && evaluated_step_ != at_.step) {
    Evaluate();
    at_.Judge(findings_->Judged(), job_.recipe.trainer);
  }
  EvaluationDetails details;
  if (ending != Ending::kSignal) {
    observer_.Tell(Phase::kScore, at_.step);
    details = examiner_->Details(all_);
  }
  if (watch_) watch_->End();  // nobody waits for another any more
  if (!recorder_) return;
  if (ending == Ending::kSignal) {
    return recorder_->Stopped(stop_signal_ ? stop_signal_ : signals_.received(), at_);
  }
  at_.seconds = seconds_before_ + clock_.seconds();
  if (!returned) TakeSnapshot();
  const std::vector<float> state = SnapshotOnHost();
  const std::string fault = returned ? "" : FaultOf(state);
  if (!fault.empty()) ThrowDiverged(fault);
  if (!returned && at_.step % job_.plan.steps_per_epoch()) RecordPart();
  recorder_->ComputedOn(*snapshot_.slice().device);
  Replica& replica = stepper_.replica();
  if (replica.updater.scales_loss()) {
    recorder_->ScaledBy(replica.updater.GetScale(replica.queue));
  }
  recorder_->Summarize(state, at_, ending, *findings_, std::move(details), input_,
                       RecordsOf(strategy_.worker_stats()));
}

}  // namespace trireme
