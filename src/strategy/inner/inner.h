#pragma once
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "strategy/step/replica.h"
#include "transport/group.h"

namespace trireme {

// How the replicas of a group advance inside a step. Called on the worker's thread.
class Inner {
 public:
  virtual ~Inner() = default;
  virtual int Summands() const { return 1; }
  // Where memory lies that others must reach; an empty slice: anywhere.
  virtual Slice Place(Role, size_t, Device&) { return {}; }
  virtual bool SharesState() const { return false; }  // see Strategy
  virtual bool OnlyUpdates() const { return false; }  // see Strategy
  virtual void Begin(Replica&) {}
  // From now on rank r has shards[r] shards of a step. All ranks call it between two steps.
  virtual void SetShards(std::span<const int> /*shards*/) {}
  virtual void BeforeStep(Replica&) {}
  // Wants to know of a bucket while backward still works on others. Else all are announced after
  // it, and an engine need not say when each is final.
  virtual bool Listens() const { return false; }
  virtual void BucketReady(Replica&, const Bucket&, const Event&) {}
  // From then on, in the order of the replica's queue, summands[0] is the sum over all shards of
  // those who advance together, and `update` (guard, optimizer, statistics) was called where it
  // belongs. May block until its last operation is enqueued.
  virtual void Agree(Replica& replica, FunctionRef<void()> update) {
    Reduce(replica);
    update();
  }
  // The state may still be on its way after Agree: see Strategy.
  virtual bool StateArrives() const { return false; }
  virtual Event AwaitBucket(Replica&, const Bucket&) { return Event::Fired(); }
  virtual void AwaitState(Replica&) {}
  // In `update`: whoever added up has seen that all gradients of the sum are finite. False: nobody
  // has looked, or something is not.
  virtual bool SumIsFinite() const { return false; }

  // Whoever has waited for the replica's queue calls it before it uses what came out: throws if
  // sums of devices were aborted meanwhile.
  virtual void Check() {}
  // An exception ends the run on this rank: what its queues wait for will not come.
  virtual void GiveUp(std::string_view /*why*/) noexcept {}

  // By rank, where it is measured; complete when all have ended.
  virtual std::vector<ClientStats> worker_stats() const { return {}; }
  // The replica's queue stood still for communication; but for AwaitBucket (ShardMarks::waits).
  virtual double waited_s() const { return 0; }
  // Of communication, waited for or not; what is beyond waited_s() computing has hidden.
  virtual double busy_s() const { return waited_s(); }
  virtual Volume volume() const { return {}; }

 protected:
  // For those who all update alike: the sum only.
  virtual void Reduce(Replica&) {}
};

// Before memory goes that a queue's work may still touch. An error is known already then: it is
// what made the step end early.
inline void DrainQuietly(Queue* queue) noexcept {
  try {
    if (queue) queue->Sync();
  } catch (const std::exception&) {
  }
}

}  // namespace trireme
