#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/stop_wish.h"
#include "health/input_bound.h"
#include "optimizer/lbfgs.h"
#include "strategy/batch/batch_objective.h"
#include "trainer/examiner.h"
#include "trainer/job.h"
#include "trainer/recorder.h"
#include "trainer/start.h"
#include "trainer/train_state.h"

namespace trireme {

// The second loop of training: an optimizer that minimises the loss of all samples at once. An
// epoch is one of its iterations, and a step. Knows vectors by their numbers, no layer and no
// batch; the first loop is trainer/worker.h. Lives on the rank that records. One thread.
class BatchTrainer {
 public:
  // What it needs of the ranks that compute, itself or others.
  class Ranks {
   public:
    virtual ~Ranks() = default;
    virtual BatchObjective& objective() = 0;
    virtual Findings Examine(int64_t step) = 0;      // what was shown last
    virtual EvaluationDetails Details() = 0;         // of the last Examine
    virtual void Pause() {}                          // something else than gradients comes now
    virtual RankRecord spent() const { return {}; }  // since the start, by this rank
    virtual const Device* device() const { return nullptr; }  // null: of other ranks
  };
  BatchTrainer(const Job& job, Ranks& ranks, Recorder& recorder, const StopWish& signals);

  Ending Run(const Start& start);
  int signal() const { return signal_; }  // after Ending::kSignal

 private:
  void Begin(const Start& start);
  Ending Loop();
  std::optional<Ending> EndEpoch(const Lbfgs::Iteration& done);
  void Evaluate();
  void ShowPoint();
  void SaveCheckpoint();
  void SaveVectors(StateWriter& writer);
  void LoadVectors(const StateReader& reader);
  bool ReturnToBest();
  void Finish(Ending ending);
  std::vector<float> StateOnHost();
  std::string FaultOf(std::span<const float> state) const;
  double TrainSeconds() const { return train_seconds_before_ + clock_.seconds() - paused_s_; }

  const Job& job_;
  Ranks& ranks_;
  BatchObjective& f_;
  Recorder& recorder_;
  const StopWish& signals_;
  Lbfgs lbfgs_;

  TrainState at_;
  std::vector<float> statistics_;  // of the point
  RankRecord before_;              // spent until the last epoch
  InputLoad input_;
  std::optional<Findings> findings_;
  int64_t evaluated_step_ = -1, saved_step_ = -1;
  int signal_ = 0;
  Stopwatch clock_;
  double seconds_before_ = 0, train_seconds_before_ = 0;  // of earlier lives
  double paused_s_ = 0;                                   // evaluation and checkpoints, this life
};

}  // namespace trireme
