#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "strategy/server/lease_table.h"

namespace trireme {

// Where a worker gets its leases. Called on the worker's thread; Release and Void on any.
//
// Leases can become void: what was pushed for them did not count. Claim then says kVoid once; what
// the centre does not have is leased again, to this worker or another one.
class LeaseSource {
 public:
  virtual ~LeaseSource() = default;

  // Leases that may wait here.
  struct Ahead {
    int most = 64;        // with one push per lease few, or the pushes are stale
    bool always = false;  // as many as the next answer needs: the worker shall never wait for one
  };

  enum class Answer { kLease, kDrain, kEnd, kVoid };
  // Blocks until there is an answer. `holds`: there is work of earlier leases that was not pushed.
  // At kDrain the worker pushes it, and waits until it knows of all pushes whether they count.
  virtual Answer Claim(bool holds, Lease& lease) = 0;
  // Until whoever keeps the run has begun.
  virtual void AwaitServer() = 0;
  virtual bool holds_void() const = 0;  // Claim will say kVoid
  virtual void Stop() = 0;              // this worker shall end: Claim says kDrain, then kEnd, soon

  // Where others than the server take what was done (see MemoryLedger): what leases came with.
  struct Standing {
    int64_t client = 0;  // this one's number
    // A grant with a lower one came too late; nothing: nobody takes leases back.
    std::optional<int64_t> fence;
  };
  // They are pushed: of the oldest. Nothing: they are void.
  virtual std::optional<Standing> Release(std::span<const int64_t> leases) = 0;
  // What this worker has of work does not count, by others' word, nor do `leases`, which it has
  // pushed; and neither does what it is granted with a lower fence.
  virtual void Void(const Standing& standing, std::span<const int64_t> leases) = 0;

  // Before something is added to a centre in memory that has reached `version`: until whoever keeps
  // the run has read enough of the notes before. On any thread, but one at a time.
  virtual void AwaitReader(int64_t /*version*/) {}

  virtual double waited_s() const { return 0; }  // the worker's thread, beside its line
};

}  // namespace trireme
