#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "base/observer.h"
#include "data/loader.h"
#include "flat/host_memory.h"
#include "flat/work_times.h"
#include "graph/engine.h"
#include "health/emulate.h"
#include "model/sample_slots.h"
#include "record/metrics.h"
#include "strategy/batch/batch_objective.h"
#include "trainer/job.h"

namespace trireme {

// Portions of a job's samples on an engine: a portion is a shard of the only step of an epoch, and
// every epoch has the order of the first. One thread.
class Portions : public PortionGradient {
 public:
  Portions(const Job& job, Engine& engine, int rank, SpanSink* spans);
  ~Portions() override;

  Device& device() const override { return queue_->device(); }
  Queue& queue() override { return *queue_; }
  Slice state() override { return state_; }
  bool HasRoom() const override { return loader_->HasRoom(); }
  void Want(int portion) override;
  PortionSums Run(Slice summand, bool accumulate) override;

  StepTimes times() const;
  LoaderRecord loader() const;
  void Pause() { loader_->Pause(); }

 private:
  const Job& job_;
  Pretence pretence_;
  SpanSink* const spans_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Executable> executable_;
  Buffer state_;
  const Residence placed_;
  SampleSlots samples_;
  HostBuffer<float> class_weights_;
  HostBuffer<float> metrics_;
  std::unique_ptr<Loader> loader_;
  Work all_;  // its shards are the portions
  int64_t run_ = 0;
  ShardMarks marks_;
  WorkTimes forward_, backward_;
  double pretended_s_ = 0;
};

}  // namespace trireme
