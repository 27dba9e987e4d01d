#pragma once
#include <cstdint>
#include <span>
#include <utility>

#include "strategy/server/protocol.h"
#include "strategy/step/replica.h"

namespace trireme {

// What a worker and the centre do to each other. Called on the worker's thread; device work goes to
// the replica's queue.
class Merge {
 public:
  virtual ~Merge() = default;
  virtual void Begin(Replica& replica) = 0;  // takes the centre's weights
  // The worker moves its own weights by its gradients; else only the centre does.
  virtual bool updates() const { return true; }
  virtual bool pushes_gradients() const { return false; }
  // The worker's own update, by its gradients.
  virtual void Update(Replica& r, const Gradient& sum) {
    r.updater.Apply(r.queue, r.work.step, sum, r.state);
  }
  // `left`: steps until a meeting, this one among them; 0: nobody knows.
  virtual void BeforeStep(Replica&, int /*left*/) {}
  virtual void AfterStep(Replica&, bool /*meets*/) {}  // `meets`: Meet is called next
  // The work of `leases` shall count at the centre. Of the head all but the version is there.
  virtual void Meet(Replica& replica, PushHead head, std::span<const int64_t> leases) = 0;
  virtual void Reload(Replica& replica) = 0;  // takes the centre's weights, forgets momentum
  // The replica's weights were changed by the centre since the last call.
  bool Moved() { return std::exchange(moved_, false); }

 protected:
  bool moved_ = false;
};

}  // namespace trireme
