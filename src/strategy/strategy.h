#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/observer.h"
#include "base/state_io.h"
#include "flat/device.h"
#include "flat/layout.h"
#include "optimizer/updater.h"
#include "strategy/staleness.h"
#include "strategy/work.h"

namespace trireme {

// One copy of the model, as a strategy sees it: flat slices, no layers.
struct Replica {
  Device& device;
  Queue& queue;  // of the engine: forward and backward run here
  Slice state;
  std::span<const Slice> summands;   // Strategy::Summands() of them
  std::span<const Outer> unwritten;  // of summands[0]; see Strategy::OnlyUpdates
  const Layout& layout;
  std::span<const Bucket> buckets;
  Updater& updater;
  Observer observer;
  Work work;       // of the step that runs
  float vote = 0;  // to stop: for a rank without shards, whose summands carry it otherwise
};

// What became of a step's time besides the engine's, and of its bytes. Totals since the start.
struct Traffic {
  double communication_s = 0;  // the step's thread waited for communication
  double hidden_s = 0;         // communication went on while it did something else
  double update_s = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
};

// What a client of a server did, as the server saw it, or a worker of a shared state.
struct ClientNumbers {
  std::string name;
  bool here = false;
  int64_t pushes = 0, samples = 0;  // that counted
  int64_t refused = 0, removed = 0;
  Staleness staleness;
};

enum class Role { kState, kSummand };
enum class Turn {
  kStep,      // `work` is to be done
  kEpochEnd,  // free pace: an epoch is drained; in step Work::ends_epoch says it
  kEnd,       // the run is over
};

// How replicas agree. One object per worker; called on the worker's thread, in this order:
// Place*, Load if resumed, Begin, then per step Next, BeforeStep, BucketReady*, AfterStep, and at
// last End. After End only Snapshot and Save.
//
// The strategy owns the memory it places, and its threads use the device: the device goes after the
// strategy, also when an exception ends the run. The replica lives from Begin to the last call.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Where state and summands live. The strategy owns the memory (Hogwild hands out one slice).
  virtual Slice Place(Role role, size_t floats, Device& device) = 0;
  // All replicas have one state: the first fills it before Begin, the others leave it alone.
  virtual bool SharesState() const { return false; }
  virtual int Summands() const = 0;  // one, or one per own shard (--deterministic)
  // Of a step with one shard the gradients go straight to the replica's updater and nowhere else:
  // some may be unwritten.
  virtual bool OnlyUpdates() const { return false; }
  virtual bool InStep() const = 0;  // Next is a pure function: the loader may look ahead

  // In step: all replicas are equal and hold every step so far. A checkpoint waits for that.
  virtual bool Agreed() const { return true; }

  virtual void Begin(Replica& replica) = 0;
  // In step: the work of step `step`. With a free pace the centre says which work is next, and
  // Work::step is the run's progress: the step in which an in-step run would take the positions.
  virtual Turn Next(int64_t step, Work& work) = 0;
  // Free pace: the run ends early, for all; Next still hands out what is begun, then kEnd. In step
  // the workers agree by themselves.
  virtual void Stop() = 0;
  virtual void BeforeStep(Replica& replica) = 0;
  // Called in bucket order, possibly for all buckets before any work has run; never blocks. Buckets
  // that are not announced when AfterStep is called (no shard in this step) count as ready then.
  virtual void BucketReady(Replica& replica, const Bucket& bucket, const Event& event) = 0;
  // May block until its last operation is enqueued. The replica's queue waits for the event before
  // the next forward; from then on the summands are the engine's again.
  virtual Event AfterStep(Replica& replica) = 0;
  // In step: like AfterStep, but the sum stays in summands[0] of rank 0 and the state as it was.
  virtual void Rehearse(Replica& replica) = 0;
  virtual void End(Replica& replica) = 0;  // the last updates of others are in

  // What is evaluated and saved: weights and statistics. In step everyone takes part.
  virtual void Snapshot(Replica& replica, Slice into) = 0;
  virtual bool Records() const = 0;  // this rank evaluates alone (free pace) and writes the run
  // Beside the snapshot's weights: optimizer, leases, position. Called after Snapshot, on the rank
  // that records.
  virtual void Save(Replica& replica, StateWriter& writer) = 0;
  virtual void Load(Replica& replica, const StateReader& reader) = 0;

  virtual Traffic traffic() const = 0;
  // Without a server: what each worker has done; none: in step, nothing is stale. At the end of an
  // epoch that of no later one.
  virtual std::vector<ClientNumbers> workers() const { return {}; }
};

class Server;

// Who keeps the run that a server leads. Called on the server's thread, which serves nobody
// meanwhile: what takes long happens elsewhere, with a copy.
class ServerKeeper {
 public:
  virtual ~ServerKeeper() = default;
  virtual void EpochEnded(
      const Server& server) = 0;                // every position of it counts, none of the next
  virtual void Look(const Server& server) = 0;  // now and then: a snapshot may be due
  virtual bool Stop() = 0;                      // the run shall end early
};

// A server rank of a free pace: no steps, no replica. One thread.
class Server {
 public:
  virtual ~Server() = default;
  virtual void Load(const StateReader& reader) = 0;
  virtual void Run(ServerKeeper* keeper) = 0;  // until the run is over; the keeper may be null

  // Where others hold parts of the centre: brings together what it is at this moment. Before
  // centre() and Save, which tell of the last such moment.
  virtual void Gather() const {}
  virtual std::span<const float> centre() const = 0;  // weights and statistics
  virtual void Save(
      StateWriter& writer) const = 0;  // what belongs to it: leases, optimizer, counts
  // Since the run began.
  struct Progress {
    int64_t epochs = 0;     // that have ended
    int64_t positions = 0;  // that count
    int64_t updates = 0;
    double loss_sum = 0, correct = 0;  // of the present epoch, over `samples`
    int64_t samples = 0;
    uint64_t bytes_sent = 0, bytes_received = 0;
  };
  virtual Progress progress() const = 0;
  virtual std::vector<ClientNumbers> clients() const = 0;
};

}  // namespace trireme
