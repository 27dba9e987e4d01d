#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flat/host_pool.h"
#include "strategy/server/protocol.h"
#include "strategy/step/replica.h"
#include "transport/group.h"

namespace trireme {

// The weights that workers have in common, as one of them reaches them: who keeps them, and what
// carries them, is a matter of the classes below it. Called on the worker's thread.
class Centre {
 public:
  virtual ~Centre() = default;

  struct Snapshot {
    int64_t version = 0;
    int64_t clients = 1;  // that share it
    std::vector<float> state;
  };
  virtual void Prefetch() = 0;  // asks for the weights that the next Fetch takes
  // `computes`: the next push is made from them; where staleness is bounded by waiting, they come
  // when one more may compute.
  virtual Snapshot Fetch(size_t floats, bool computes = false) = 0;
  virtual Snapshot FetchNow(size_t floats) = 0;                   // what was not asked for before
  virtual std::optional<Snapshot> Prefetched(size_t floats) = 0;  // if it has come: does not wait
  virtual double fetch_s() const { return 0; }  // how long one takes to come; 0: hardly any time
  // The newest that was offered since the last call; nothing: none newer.
  virtual std::optional<Snapshot> News(size_t floats) = 0;
  // `change` shall count, made as `head` says: enqueues a copy of it, which goes when it is there;
  // the worker's thread does not wait for that. `memory`: for the copy, if the caller has any to
  // spare.
  virtual void Push(Queue& queue, Slice change, const PushHead& head,
                    std::span<const int64_t> leases, std::vector<float> memory = {}) = 0;
  // What a push is answered with, in rounds; nothing: it did not count, and its leases are void.
  virtual std::optional<Snapshot> Answered(size_t floats) = 0;
  // A push with these leases can name one more; else a meeting is due.
  virtual bool HasRoom(std::span<const int64_t> /*leases*/) const { return true; }
  // Returns when it is known of all pushes whether they count. On a server's line, where words
  // come in their order, nobody needs to know.
  virtual void Settle() {}
  virtual int64_t newest() const { return 0; }  // the newest version that this worker knows of
  virtual bool holds_void() const = 0;          // leases that the next push would name do not count

  virtual double waited_s() const { return 0; }  // the worker's thread, beside its line
  virtual Volume volume() const { return {}; }   // likewise

  // Weights into the device's memory; waits for the queue.
  void Put(Queue& queue, const Snapshot& centre, Slice into);

 protected:
  HostPool staging_;  // of states, between a device and what carries them
};

// The centre's weights into the replica; their version.
int64_t TakeCentre(Centre& centre, Replica& replica);

}  // namespace trireme
