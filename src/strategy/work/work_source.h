#pragma once
#include <span>

#include "base/state_io.h"
#include "strategy/step/replica.h"
#include "strategy/step/work.h"

namespace trireme {

// Which samples a worker computes with next. One object per worker, called on its thread.
class WorkSource {
 public:
  virtual ~WorkSource() = default;
  // Next is a pure function of the step: all workers advance together.
  virtual bool InStep() const { return false; }
  virtual Turn Next(Replica* replica, int64_t step, Work& work) = 0;  // see Strategy
  virtual void Done() {}                                              // with what Next gave
  virtual void Stop() {}  // the run ends early, for all: Next hands out what is begun, then kEnd
  virtual void End() {}   // after the last step
  // In step, on all ranks: an epoch is over, and computing took this one so long. Says who takes
  // how many shards from now on.
  virtual void EndEpoch(double /*seconds*/) {}
  virtual std::span<const int> ShardsOfRanks() const { return {}; }  // empty: they never change
  virtual void Save(StateWriter&) const {}
  virtual void Load(const StateReader&) {}
};

}  // namespace trireme
