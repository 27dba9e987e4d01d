#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/state_io.h"
#include "flat/work_times.h"
#include "strategy/exchange/exchange.h"
#include "strategy/inner/inner.h"
#include "strategy/step/replica.h"
#include "strategy/work/work_source.h"

namespace trireme {

// How replicas agree: which samples are next (WorkSource), how a step advances (Inner), an update,
// and what is exchanged besides (Exchange). One object per worker; called on the worker's thread,
// in this order: Place*, Load if resumed, Begin, then per step Next, BeforeStep, BucketReady*,
// AfterStep, and at last End. After End only Snapshot and Save.
//
// The strategy owns the memory it places, and its threads use the device: the device goes after the
// strategy, also when an exception ends the run. The replica lives from Begin to the last call.
class Strategy {
 public:
  // `records`: this rank writes the run.
  Strategy(std::unique_ptr<Inner> inner, std::unique_ptr<Exchange> exchange,
           std::unique_ptr<WorkSource> source, bool records);
  ~Strategy();

  // Where state and summands live. The strategy owns the memory (Hogwild hands out one slice).
  Slice Place(Role role, size_t floats, Device& device);
  // All replicas have one state: the first fills it before Begin, the others leave it alone.
  bool SharesState() const { return inner_->SharesState(); }
  int Summands() const {
    return inner_->Summands();
  }  // one, or one per own shard (--deterministic)
  // Of a step with one shard the gradients go straight to the replica's updater and nowhere else:
  // some may be unwritten.
  bool OnlyUpdates() const { return exchange_->OwnsState() && inner_->OnlyUpdates(); }
  // Next is a pure function: the loader may look ahead.
  bool InStep() const { return source_->InStep(); }
  // In step: all replicas are equal and hold every step so far. A checkpoint waits for that.
  bool Agreed() const { return exchange_->Agreed(); }

  void Begin(Replica& replica);
  // In step: the work of step `step`. With a free pace the source says which work is next, and
  // Work::step is the run's progress: the step in which an in-step run would take the positions.
  Turn Next(int64_t step, Work& work);
  // Free pace: the run ends early, for all; Next still hands out what is begun, then kEnd. In step
  // the workers agree by themselves.
  void Stop();
  void BeforeStep(Replica& replica);
  // Whether anybody wants to know of a bucket before backward has ended: else nobody needs to call
  // BucketReady.
  bool Listens() const { return inner_->Listens(); }
  // Called in bucket order, possibly for all buckets before any work has run; never blocks. Buckets
  // that are not announced when AfterStep is called (nobody listens, or there was no shard in this
  // step) count as ready then.
  void BucketReady(Replica& replica, const Bucket& bucket, const Event& event);
  // May block until its last operation is enqueued. The replica's queue waits for the event before
  // the next forward; from then on the summands are the engine's again.
  Event AfterStep(Replica& replica);
  // The new state may come while the next forward has begun: AwaitBucket before a queue reads a
  // bucket of it (Batch::await_bucket), AwaitState before anything else does. What the strategy
  // itself reads it has waited for.
  bool StateArrives() const { return inner_->StateArrives(); }
  Event AwaitBucket(Replica& replica, const Bucket& bucket) {
    return inner_->AwaitBucket(replica, bucket);
  }
  void AwaitState(Replica& replica) { inner_->AwaitState(replica); }
  // In step, on all ranks, between two epochs: computing the one that is over took this rank so
  // long. From then on Next looks beyond it.
  void EndEpoch(double seconds);
  // Of a step, by rank; empty: equally many, always.
  std::span<const int> ShardsOfRanks() const { return source_->ShardsOfRanks(); }
  // In step: like AfterStep, but the sum stays in summands[0] of rank 0 and the state as it was.
  void Rehearse(Replica& replica);
  void End(Replica& replica);  // the last updates of others are in
  // Of what was enqueued and waited for: throws if it is worth nothing, because a rank was lost.
  void Check() { inner_->Check(); }
  // An exception ends the run on this rank, whose queues may still wait for others.
  void GiveUp(std::string_view why) noexcept { inner_->GiveUp(why); }

  // What is evaluated and saved: weights and statistics. In step everyone takes part.
  void Snapshot(Replica& replica, Slice into);
  bool Records() const { return records_; }  // evaluates alone (free pace) and writes the run
  // Beside the snapshot's weights: optimizer, leases, position. Called after Snapshot, on the rank
  // that records.
  void Save(Replica& replica, StateWriter& writer);
  void Load(Replica& replica, const StateReader& reader);

  Traffic traffic() const;
  // Without a server: what each worker has done; none: in step, nothing is stale. At the end of an
  // epoch that of no later one.
  std::vector<ClientStats> worker_stats() const { return exchange_->worker_stats(); }

 private:
  void AnnounceRest(Replica& replica);
  void Update(Replica& replica);

  std::vector<Buffer> memory_;
  // Members stand on those before them.
  const std::unique_ptr<Inner> inner_;
  const std::unique_ptr<Exchange> exchange_;
  const std::unique_ptr<WorkSource> source_;
  const bool records_;
  Replica* replica_ = nullptr;  // since Begin
  size_t announced_ = 0;        // buckets of this step
  unsigned updates_ = 0;
  WorkTimes update_;
  WorkTimes agree_;  // for traces only
};

}  // namespace trireme
