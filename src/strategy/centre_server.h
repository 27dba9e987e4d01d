#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/log.h"
#include "flat/host.h"
#include "strategy/centre_rule.h"
#include "strategy/lease_table.h"
#include "strategy/portion_board.h"
#include "strategy/stale_gate.h"
#include "strategy/strategy.h"
#include "transport/reception.h"

namespace trireme {

// Holds the centre, hands out leases, merges what is pushed, tells clients of it. Centre, leases
// and version change together, so a snapshot holds all three of one moment: restarted from it,
// positions whose updates it does not hold are leased again. One thread; clients come over links,
// come late and go. What a client says is checked before it counts.
class CentreServer : public Server {
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

  struct Setup {
    std::vector<Link*> clients;  // known from the start
    Reception* reception = nullptr;
    Plan plan;
    int64_t positions = 0;  // of the run
    int64_t lease = 1;      // positions at a time; a clock's are shards
    When when = When::kArrival;
    int64_t staleness = 0;
    Stale stale = Stale::kTake;
    std::function<std::unique_ptr<CentreRule>(Device&)> rule;
    bool answers = false;     // a push with the new centre
    bool broadcasts = false;  // offers every new centre to all
    const Log* log = nullptr;
  };
  // `board`, if not null: the centre lies on several servers, and this is the first of them. Then
  // pushes are applied on arrival, and nothing is answered or broadcast.
  CentreServer(Setup setup, std::span<const float> centre,
               std::unique_ptr<PortionBoard> board = nullptr);

  void Load(const StateReader& reader) override;
  void Run(ServerKeeper* keeper) override;
  void Gather() const override;
  std::span<const float> centre() const override { return board_ ? board_->whole() : portion(); }
  void Save(StateWriter& writer) const override;
  Progress progress() const override;
  std::vector<ClientNumbers> clients() const override;

  // On the same thread as Run.
  const LeaseTable& leases() const { return leases_; }
  int64_t version() const { return version_; }  // of the centre: updates, clocks or rounds
  int64_t refused() const;
  Staleness staleness() const;  // of all clients
  void OnClose(std::function<void(const Lease&)> seen) { seen_ = std::move(seen); }

 private:
  enum class Presence { kHere, kGone, kBye, kDismissed };
  struct Peer {
    Link* link;
    Presence presence = Presence::kHere;
    bool asks = false;               // waits for an answer
    bool holds = false;              // ... and has work to push
    int64_t wants = 1;               // leases at most
    bool waits = false;              // its push is part of a round that is not complete
    int64_t from = -1;               // computes from this version; -1: nobody knows (all but kWait)
    int64_t told = -1;               // the newest version that was offered to it
    int diverged = 0;                // pushes since the last finite one
    int64_t fetch = 0;               // the number of its fetch that waits for its turn
    std::deque<Message> inbox = {};  // pushes whose other portions are awaited, and what came after
    ClientNumbers numbers;
  };
  // A push that was found good and waits for others.
  struct Held {
    int client = 0;
    Message message;
    std::vector<int64_t> leases;
    int64_t samples = 0;
  };

  void Meet(Link* link, std::string name);
  bool HearAll();
  void Hear(int client, Arrival arrival, Message& message);
  void Handle(int client, Message& message);
  void ReadInbox(int client);
  bool Waits(const Message& message, int client) const;
  void Watch(int client);
  void TakeBack(int client);  // its leases, for others
  void Lose(int client);      // it is away
  void Forget(int client);    // its leases, and what else it has asked for
  void Push(int client, Message& message);
  const char* Fault(int client, const Message& push) const;  // null: none
  void Refuse(int client, const char* why);
  void Dismiss(int client);
  void ApplyAlone(Held held);
  void ApplyInTime();
  void GiveWeights();
  void ApplyClocks();
  void ApplyRound();
  void Apply(std::span<Held> parts, int64_t step, float share);
  void Count(const Held& held);
  int64_t ClockOf(const Lease& lease) const;
  void Answer(int client);
  Message Grant(int client);  // without leases: there are none
  void Broadcast();
  void SendCentre(Link& link, int64_t fetch = 0);
  std::span<const float> portion() const { return centre_.slice().host(); }  // of this server
  void EndEpoch(ServerKeeper* keeper);
  bool Over();
  int64_t Here() const;  // how many clients
  double timeout_s() const;

  const Setup setup_;
  HostDevice device_;
  std::unique_ptr<Queue> queue_;
  const std::unique_ptr<PortionBoard> board_;
  Buffer centre_;  // or this server's portion
  std::unique_ptr<CentreRule> rule_;
  LeaseTable leases_;
  std::deque<Peer> peers_;
  int64_t version_ = 0;
  std::map<int64_t, std::map<int64_t, Held>> clocks_;  // by step, by first position
  std::vector<Held> round_;
  StaleGate gate_;                // kWait
  std::vector<Held> early_;       // ... pushes that wait for older ones
  std::deque<int> want_weights_;  // ... clients, in turn
  Progress progress_;
  bool stopping_ = false;
  int64_t newest_clock_ = -1;  // of which a shard was leased
  Deadline deserted_since_;
  Deadline looked_at_ = After(0), judges_from_ = After(0);  // who is overdue
  std::vector<float> spare_;  // the body of the last push carries the next centre
  std::function<void(const Lease&)> seen_;
  Bell bell_;
};

}  // namespace trireme
