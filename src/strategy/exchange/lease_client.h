#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>

#include "strategy/exchange/server_line.h"
#include "strategy/server/lease_table.h"

namespace trireme {

// Where a worker gets its leases: from the first server of its line. It asks for the next ones
// while the worker is busy with the last. Called on the worker's thread.
//
// Leases can become void: the server refused a push (it had given the worker up), or it was
// restarted and knows only its last snapshot. Claim then says kVoid once; what the centre does not
// have is leased again to whoever asks.
class LeaseClient final : public ServerLine::Listener {
 public:
  // Leases that may wait here.
  struct Ahead {
    int most = 64;        // with one push per lease few, or the pushes are stale
    bool always = false;  // as many as the next answer needs: the worker shall never wait for one
  };
  LeaseClient(ServerLine& line, Ahead ahead);

  enum class Answer { kLease, kDrain, kEnd, kVoid };
  // Blocks until there is an answer. `holds`: there is work of earlier leases that was not pushed.
  Answer Claim(bool holds, Lease& lease);
  // Until the server has answered for the first time, if only that there is nothing to lease yet:
  // then it has begun. Whoever has all leases may be waiting for this worker.
  void AwaitServer();
  bool holds_void() const;          // Claim will say kVoid
  void Stop() { stopped_ = true; }  // this worker shall end: Claim says kDrain, then kEnd

  // Where others than the server take what was done (see MemoryLedger): what leases came with.
  struct Standing {
    int64_t client = 0;  // this one's number
    int64_t fence = 0;   // a grant with a lower one came too late
  };
  // They are pushed: of the oldest. Nothing: they are void.
  std::optional<Standing> Release(std::span<const int64_t> leases);
  // What this worker has of work does not count, by others' word, and neither does what it is
  // granted with a lower fence.
  void Void(const Standing& standing);

  // With the line locked.
  bool over() const { return void_ || ended_; }  // no answer comes to what was pushed
  bool Hear(size_t server, Message& message) override;
  void Renewed(size_t server) override;

 private:
  void AskForLeases(bool holds);
  void TakeGrant(const Message& message);
  void TimeAnswer();

  ServerLine& line_;
  const Ahead ahead_;
  double claimed_at_ = 0;  // the lease that is worked on; 0: none
  double step_s_;          // what the work on a lease takes, on average; at first a guess
  bool stopped_ = false;

  // Guarded by the line.
  bool answered_ = false;  // ever
  bool asked_ = false;     // an ask waits at the server
  double asked_at_ = 0;
  double answer_s_ = 0;         // how long a grant may take, by the last ones
  std::deque<Lease> granted_;   // not claimed yet
  size_t granted_at_once_ = 0;  // the last time
  bool drain_ = false, ended_ = false, void_ = false;
  std::map<int64_t, Standing> standings_;  // by lease that is not pushed
  int64_t least_fence_ = 0;
};

}  // namespace trireme
