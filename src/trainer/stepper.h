#pragma once
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "data/ledger.h"
#include "data/loader.h"
#include "flat/host_memory.h"
#include "flat/work_times.h"
#include "graph/engine.h"
#include "health/emulate.h"
#include "model/sample_slots.h"
#include "record/metrics.h"
#include "strategy/strategy.h"
#include "trainer/job.h"
#include "trainer/training_feed.h"
#include "transport/group.h"

namespace trireme {

// What a step left in its summand's tail, summed over all who advance together.
struct StepResult {
  int64_t step = 0;
  int64_t samples = 0;
  double loss = 0;     // mean over the samples
  double correct = 0;  // of the samples
  double votes = 0;    // to stop, see VoteOf
  double ended_s = 0;  // on the clock, if trainer.metrics_steps asks for it
};

// A signal as a vote to stop: all ranks see the sum of votes, and so which signal it was.
float VoteOf(int signal);
int SignalOf(double votes);  // 0: nobody wants to stop

// One training step after the other: work from the strategy, samples from the loader, shards on the
// engine, agreement by the strategy. Allocates nothing once it runs. One thread.
class Stepper {
 public:
  // `workers`: the group of all workers, for batch-norm over their samples; null: over a shard's.
  // `generator`: where samples come from; null: from a loader of its own.
  Stepper(const Job& job, Strategy& strategy, Engine& engine, int worker, Group* workers = nullptr,
          const Observer& observer = {}, Generator* generator = nullptr);
  ~Stepper();

  Replica& replica() { return replica_; }
  Slice state() const { return state_; }  // with what is frozen, of which the replica knows nothing
  Queue& queue() { return *queue_; }
  const std::string& placed() const { return placed_.text; }  // where its samples lie, in words

  // Fetches the next work; with kStep it is in replica().work.
  Turn Take(int64_t step);
  // Computes it. `signal`: what this rank got, 0 for nothing. Gives the result of the step before,
  // whose numbers are on the host by now; false if there is none.
  bool Run(int signal, StepResult& previous);
  bool Drain(StepResult& last);  // the result that Run still holds back

  // With one sample per shard of step `step`, state and order untouched: what all ranks compute
  // together (valid on rank 0), and what this rank computes alone. Gradients only.
  std::vector<float> GradientTogether(int64_t step, int workers);
  std::vector<float> GradientAlone(int64_t step);

  void Pause() { loader_->Pause(); }  // something else than steps comes now

  StepTimes times() const;
  LoaderRecord loader() const;
  const Traffic traffic() const { return strategy_.traffic(); }

 private:
  struct StepMetrics {  // on their way to the host
    Event event;
    HostBuffer<float> values;
    int64_t step = 0, samples = 0;
    bool open = false;
  };

  void Want(const Work& work);
  // May gradients be left unwritten? Of a rehearsal all are written.
  enum class Form { kAll, kNeeded };
  Batch NextBatch(const Shard& shard, float vote, Form form);
  void TakeGenerated(const Shard& shard, Batch& batch);
  void ReleaseSamples();
  double WaitedForSamples() const;
  void RunShards(float vote, Form form);
  Event RunShard(const Batch& batch, size_t shard);
  void CountShard(size_t shard);
  Event AwaitBucket(const Bucket& bucket);
  void Pretend();
  double SleepIn(const Bucket& bucket, double part);
  void FlipABit();
  void CutToOneSample();
  std::vector<float> GradientOnHost();
  uint64_t RandomKey(int64_t epoch);
  bool Collect(StepMetrics& metrics, StepResult& result);

  const Job& job_;
  Pretence pretence_;
  const int worker_;
  Group* const workers_;
  Strategy& strategy_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Executable> executable_;
  Updater updater_;
  const Slice state_;
  std::vector<Slice> summands_;
  Replica replica_;

  Residence placed_;
  SampleSlots samples_;
  HostBuffer<float> class_weights_;
  Generator* const generator_;      // null: there is none
  std::vector<int64_t> generated_;  // that are taken in this step
  double waited_s_ = 0;             // for them
  std::unique_ptr<Loader> loader_;  // beside a generator only for rehearsals
  std::optional<Ledger> ledger_;    // if data.ledger asks for it
  std::vector<Positions> taken_;    // for it, in this step
  std::vector<Work> ahead_;         // a ring: work whose samples are wanted already, by step
  int64_t next_ahead_ = -1;         // the first step that is not in the ring
  std::vector<Event> in_use_;  // by slot taken in this step: fires when its memory is free again

  uint64_t random_key_ = 0;
  int64_t random_epoch_ = -1;
  std::array<StepMetrics, 2> metrics_;
  int turn_ = 0;        // which of the two is filled next
  double aside_s_ = 0;  // of this step's shards: waited for weights, or slept
  ShardMarks marks_;    // of the last shard
  WorkTimes forward_, backward_;
  WorkTimes awaited_;       // of forward: for weights
  double slept_s_ = 0;      // of that: to pretend
  double pretended_s_ = 0;  // all that was slept in forward
};

}  // namespace trireme
