#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>

#include "strategy/exchange/lease_source.h"
#include "strategy/exchange/server_line.h"

namespace trireme {

// Leases of the first server of the worker's line. It is asked for the next ones while the worker
// is busy with the last.
//
// They become void where the server refused a push (it had given the worker up), or was restarted
// and knows only its last snapshot.
class LeaseClient final : public LeaseSource, public ServerLine::Listener {
 public:
  LeaseClient(ServerLine& line, Ahead ahead);

  Answer Claim(bool holds, Lease& lease) override;
  // Until the server has answered for the first time, if only that there is nothing to lease yet:
  // then it has begun. Whoever has all leases may be waiting for this worker.
  void AwaitServer() override;
  bool holds_void() const override;
  void Stop() override { stopped_ = true; }
  std::optional<Standing> Release(std::span<const int64_t> leases) override;
  void Void(const Standing& standing, std::span<const int64_t> leases) override;

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
