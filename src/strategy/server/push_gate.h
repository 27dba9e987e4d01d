#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "strategy/server/server_state.h"
#include "strategy/server/stale_gate.h"
#include "strategy/step/work.h"

namespace trireme {

// The only way into the centre: decides whether a push counts and when it is applied. What a client
// says is checked here; who it is, whether it is here and what it is told is the server's business.
// One thread: the server's.
class PushGate {
 public:
  // When pushes are applied.
  enum class When {
    kArrival,
    kClock,  // all shards of a step together, in order; at most `staleness` steps ahead of that
    kRound,  // one of every client that is here together
  };
  // What happens to a push that is more than `staleness` versions behind, on arrival.
  enum class Stale {
    kTake,
    kScale,
    kDrop,
    kWait,  // nobody gets so far: workers wait for weights, and pushes for older ones
  };
  struct Rules {
    Plan plan;
    When when = When::kArrival;
    int64_t staleness = 0;
    Stale stale = Stale::kTake;
  };
  // Pushes in a row with values that cannot count: leasing their positions again would never end.
  static constexpr int kDiverged = 50;

  // `applied` hears whose push was applied on arrival, before the next one is.
  PushGate(const Rules& rules, ServerState& centre, std::function<void(int client)> applied);

  struct Verdict {
    const char* fault = nullptr;  // why it does not count; null: it does, now or later
    bool diverged = false;        // ... and neither did kDiverged of its client in a row
  };
  // Takes a push, if it is good, and applies what now is complete or in time, but no round.
  Verdict Take(int client, Message& push);
  // Its partitions on other servers are still to come, and nothing else is wrong with it.
  bool AwaitsPartitions(int client, const Message& push) const;

  // Applies the pushes that were taken since the last round; false: there are none.
  bool ApplyRound();

  // kWait: who may compute, from which version.
  bool MayBegin() const { return stale_gate_.MayBegin(); }
  void Begin(int client);   // it computes from the present version until it pushes
  void GiveUp(int client);  // what it computes, if it does, will not come
  void ApplyInTime();       // what waited for those who gave up

 private:
  const char* Fault(int client, const Message& push) const;  // null: none
  PartitionSequencer::Standing StandingOf(const Message& push) const;
  int64_t SamplesOf(const Message& push) const;
  GoodPush Accept(int client, Message& push) const;
  int64_t Progress() const;  // the step in which an in-step run would be
  void ApplyAlone(GoodPush push);
  void ApplyClocks();

  const Rules rules_;
  ServerState& centre_;
  LeaseTable& leases_;  // the centre's
  const std::function<void(int client)> applied_;
  std::map<int, int> diverged_;                            // by client: pushes since a finite one
  std::map<int64_t, std::map<int64_t, GoodPush>> clocks_;  // by step, by first position
  std::vector<GoodPush> round_;
  StaleGate stale_gate_;         // kWait
  std::map<int, int64_t> from_;  // ... by client: the version that it computes from
  std::vector<GoodPush> early_;  // ... pushes that wait for older ones
};

}  // namespace trireme
