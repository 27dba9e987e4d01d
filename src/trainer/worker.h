#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/state_io.h"
#include "base/stop_wish.h"
#include "health/input_bound.h"
#include "health/rank_watch.h"
#include "health/self_test.h"
#include "health/straggler.h"
#include "health/weight_check.h"
#include "optimizer/weight_average.h"
#include "strategy/strategy.h"
#include "trainer/examiner.h"
#include "trainer/job.h"
#include "trainer/recorder.h"
#include "trainer/start.h"
#include "trainer/stepper.h"
#include "trainer/train_state.h"
#include "transport/world.h"

namespace trireme {

// One replica's life from the first step to the last: steps, and at epoch ends evaluation, records
// and checkpoints. Runs on one thread.
class Worker {
 public:
  // `recorder` is null on ranks that do not record, `watch` where nobody watches, `spans` where
  // nothing is traced, `generator` where each worker fetches its own samples.
  Worker(const Job& job, World& world, Backend& backend, Strategy& strategy, Recorder* recorder,
         const StopWish& signals, RankWatch* watch, SpanSink* spans,
         Generator* generator = nullptr);

  Ending Run(const Start& start);
  int exit_code() const;  // after Ending::kSignal
  const std::string& placed() const { return stepper_.placed(); }
  // On rank 0, after a self-test.
  const std::optional<GradientMatch>& self_test() const { return self_test_; }

 private:
  void SelfTest();
  void CheckWeights();
  void AdvanceTo(int64_t step);
  void Count(const StepResult& result);
  std::optional<Ending> EndOfEpoch();
  void Evaluate();
  void EvaluateSnapshot();
  bool ReturnToBest();
  void DrainStepper();
  std::vector<float> SnapshotOnHost();
  std::string LossFault() const;
  std::string FaultOf(std::span<const float> state) const;
  double TrainSeconds() const;
  static constexpr char kOwnState[] = "trainer.state";  // beside an average, in a checkpoint

  void BeginWith(const Start& start);
  void TakeSnapshot();
  void SaveOwn(StateWriter& writer);
  void SaveCheckpoint();
  void Finish(Ending ending);
  bool EvaluationIsDue() const;
  void Hint(const EpochRecord& record);
  RankRecord SpentSince(RankRecord& before);  // which becomes now
  EpochRecord MeasureEpoch(double epoch);
  void RecordPart();
  void AddPause(double seconds, SpanKind kind);
  void GatherTimes(EpochRecord& record);
  void JudgeInput(EpochRecord& record);
  void Publish();

  const Job& job_;
  World& world_;
  Engine& engine_;
  Strategy& strategy_;
  Recorder* const recorder_;
  const StopWish& signals_;
  RankWatch* const watch_;
  const int worker_;
  Group* const all_;       // that advance in step with this one; null: its pace is free
  const bool takes_part_;  // in evaluations and checkpoints; at a free pace only who records does
  std::unique_ptr<Group> workers_;  // all of them, with strategy.sync_batch_norm
  const Observer observer_;
  Stepper stepper_;
  Buffer snapshot_;
  std::optional<WeightAverage> average_;  // with trainer.ema: what is evaluated and saved
  std::optional<Examiner> examiner_;
  std::optional<GradientMatch> self_test_;
  std::unique_ptr<WeightCheck> weight_check_;  // since the first

  TrainState at_;
  RankRecord before_epoch_, before_line_;  // spent until then
  std::vector<double> silences_before_;
  StragglerWatch late_;
  InputLoad input_;          // of all epochs of this life
  int64_t judged_step_ = 0;  // until which it is
  Stopwatch clock_;
  double seconds_before_ = 0, train_seconds_before_ = 0;  // of earlier lives
  double paused_s_ = 0;                                   // evaluation and checkpoints, this life
  std::optional<Findings> findings_;                      // the newest
  int64_t evaluated_step_ = -1;
  int64_t saved_step_ = 0;
  bool unsaved_ = false;
  bool owed_ = false;    // a checkpoint that was due between two meetings
  int stop_signal_ = 0;  // that all agreed on
  int64_t diverged_since_ = -1;
};

}  // namespace trireme
