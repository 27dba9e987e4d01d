#pragma once
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/function_ref.h"
#include "health/input_bound.h"
#include "record/checkpoint.h"
#include "record/metrics.h"
#include "record/progress.h"
#include "record/run_directory.h"
#include "record/tensorboard.h"
#include "strategy/step/replica.h"
#include "trainer/dead_units.h"
#include "trainer/examiner.h"
#include "trainer/job.h"
#include "trainer/stepper.h"
#include "trainer/train_state.h"

namespace trireme {

// The numbers of a client, or of all, as the run keeps them.
ClientRecord RecordOf(const ClientStats& numbers);
ClientsRecord RecordsOf(std::span<const ClientStats> clients);  // each, and their sum

// Samples that a run in step has used after so many steps, and of them those of its last epoch, or
// of the part that there is.
int64_t SamplesUntil(const Plan& plan, int64_t step);
double SamplesOfEpoch(const Plan& plan, int64_t step);
// What has been done of the epoch that ends at `epoch`; begins the next one's sums.
EpochRecord CloseEpoch(const Job& job, double epoch, TrainState& at);

// "CPU, architecture, threads": what the numbers of a run were measured on.
std::string MachineText(const Job& job);

// The run cannot go on, or must not end well, with such a fault.
[[noreturn]] void ThrowDiverged(const std::string& fault);

// Writes the run: the progress line, metrics, checkpoints, the summary. Belongs to the one rank
// that records; one thread.
class Recorder {
 public:
  // `at`: what a resumed run has behind it.
  Recorder(const Job& job, RunDirectory& directory, Progress& progress, const TrainState& at);

  // Cheap: called after every step. `spent` since the last line is asked where one is written.
  void Step(const StepResult& result, const TrainState& at, FunctionRef<RankRecord()> spent);
  void Epoch(const EpochRecord& record);
  void ComputedOn(const Device& device);             // for the summary
  void ScaledBy(const Updater::ScaleOnHost& scale);  // the loss, at last: likewise
  // The first time that it is asked once it can be told: what may be wrong with the run.
  void Hint(const EpochRecord& record, const Evaluation& test,
            FunctionRef<std::optional<DeadUnits>()> find_dead);
  void RateFell(const TrainState& at);  // to what its schedule makes of it
  void Paused(double seconds);          // for an evaluation, a checkpoint: no time of steps
  void Stopped(int signal, const TrainState& at);
  // What makes a state worthless: values that are not finite, in it or in what was found of it
  // (null: nothing yet). Empty: nothing does.
  std::string FaultOf(std::span<const float> state, const TrainState& at,
                      const Findings* findings) const;
  // `save` writes what belongs to the state besides: optimizer, strategy. With a `fault` nothing is
  // written: the good checkpoints stay.
  void Checkpoint(std::span<const float> state, const TrainState& at, const std::string& fault,
                  FunctionRef<void(StateWriter&)> save);
  // The best checkpoint becomes the last one, too: what the run leaves. Nothing if it is lost.
  struct Saved {
    std::vector<float> state;
    TrainState at;
  };
  std::optional<Saved> ReturnToBest(const TrainState& at);
  const Summary& summary() const { return summary_; }  // empty before Summarize
  void Summarize(std::span<const float> state, const TrainState& at, Ending ending,
                 const Findings& findings, EvaluationDetails details, const InputLoad& input,
                 const ClientsRecord& clients);

 private:
  const Job& job_;
  RunDirectory& directory_;
  Progress& progress_;
  CheckpointStore checkpoints_;
  std::optional<TensorBoardWriter> tensorboard_;
  Summary summary_;
  double last_line_s_ = Now();
  int64_t last_line_samples_ = -1;  // none yet
  double line_loss_sum_ = 0;        // of the steps since the last line
  int64_t line_samples_ = 0;
  int said_threads_ = 0;  // of the loader
  bool said_fault_ = false;
  bool judged_;  // by Hint, or in an earlier life
};

}  // namespace trireme
