#pragma once
#include <optional>
#include <vector>

#include "base/state_io.h"
#include "strategy/step/replica.h"
#include "transport/group.h"

namespace trireme {

// What a worker shares with others besides the steps that it advances by: by itself nothing. One
// object per worker, called on its thread; device work goes to the replica's queue.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void Begin(Replica&) {}
  // The worker moves its own weights by its gradients; else only others do.
  virtual bool Updates() const { return true; }
  virtual void Update(Replica& r, const Gradient& sum) {
    r.updater.Apply(r.queue, r.work.step, sum, r.state);
  }
  // Nobody else keeps the run: the worker's optimizer belongs to a checkpoint.
  virtual bool OwnsState() const { return true; }
  // All replicas are equal and hold every step so far.
  virtual bool Agreed() const { return true; }
  virtual void BeforeStep(Replica&) {}
  virtual void AfterStep(Replica&) {}
  virtual void Stop() {}
  virtual void End(Replica&) {}

  // What is evaluated and saved: weights and statistics. Enqueued.
  virtual void Snapshot(Replica& replica, Slice into);
  virtual void Save(Replica&, StateWriter&) {}
  virtual void Load(Replica&, const StateReader&) {}

  virtual double waited_s() const { return 0; }
  virtual std::optional<Volume> volume() const { return {}; }  // nothing: the inner choice's
  // By worker, where it is measured.
  virtual std::vector<ClientStats> worker_stats() const { return {}; }
};

}  // namespace trireme
