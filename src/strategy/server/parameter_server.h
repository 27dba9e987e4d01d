#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/log.h"
#include "strategy/server/handout_board.h"
#include "strategy/server/memory_ledger.h"
#include "strategy/server/push_gate.h"
#include "strategy/server/server.h"
#include "strategy/server/server_state.h"
#include "transport/acceptor.h"

namespace trireme {

// Hands out leases (or says in what order clients take them), lets what is pushed into the centre
// when its time has come, tells clients of it. Restarted from a snapshot, it leases again the
// positions whose updates that does not hold. One thread; clients come over links, come late and
// go. What a client says is checked before it counts.
class ParameterServer : public Server {
 public:
  using When = PushGate::When;
  using Stale = PushGate::Stale;

  struct Setup {
    std::vector<Link*> clients;  // known from the start
    Acceptor* acceptor = nullptr;
    Plan plan;
    int64_t positions = 0;  // of the run
    int64_t lease = 1;      // positions at a time; a clock's are shards
    EpochBorder border = EpochBorder::kBarrier;
    int threads = 1;  // that work on an update
    When when = When::kArrival;
    int64_t staleness = 0;
    Stale stale = Stale::kTake;
    ServerState::MakeRule rule;
    bool broadcasts = false;   // offers every new centre to all
    Memory* memory = nullptr;  // not null: the centre lies there, and clients add to it themselves
    const Log* log = nullptr;
    std::optional<int64_t> life;  // its number, which begins its leases' ids; nothing: by chance
  };
  // `sequencer`, if not null: the centre lies on several servers, and this is the first of them.
  // Then pushes are applied on arrival, and each server broadcasts its partition.
  ParameterServer(Setup setup, std::span<const float> centre,
                  std::unique_ptr<PartitionSequencer> sequencer = nullptr);

  void Load(const StateReader& reader) override;
  void Run(ServerKeeper* keeper) override;
  void Gather() const override;
  std::span<const float> centre() const override { return centre_.whole(); }
  void Save(StateWriter& writer) const override;
  Progress progress() const override;
  std::vector<ClientStats> clients() const override;

  // On the same thread as Run.
  const LeaseTable& leases() const { return centre_.leases(); }
  int64_t version() const { return centre_.version(); }
  int64_t refused() const;
  Staleness staleness() const;  // of all clients
  void OnClose(std::function<void(const Lease&)> seen) { centre_.OnClose(std::move(seen)); }

 private:
  enum class Presence { kHere, kGone, kBye, kDismissed };
  struct Peer {
    Link* link;
    Presence presence = Presence::kHere;
    bool silent = false;        // gone by that alone: back when its link hears it
    bool asks = false;          // waits for an answer
    bool told_to_wait = false;  // ... and knows it
    bool holds = false;         // ... and has work to push
    int64_t least = 1;          // leases: fewer would be used up before an answer can come
    int64_t wants = 1;          // ... at most
    bool waits = false;         // its push is part of a round that is not complete
    int64_t told = -1;          // the newest version that was offered to it
    int64_t fetch = 0;          // the number of its fetch that waits for its turn
    std::deque<Message> inbox =
        {};  // pushes whose other partitions are awaited, and what came after
  };

  std::unique_ptr<MemoryLedger> MakeLedger();
  void Serve(ServerKeeper* keeper);
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
  void Refuse(int client, const char* why);
  void Dismiss(int client);
  void Applied();  // a push, on arrival
  void GiveWeights();
  void ApplyRound();
  void Answer(int client);
  Message Grant(int client);  // without leases: there are none
  void Broadcast();
  void SendCentre(Link& link, int64_t fetch = 0);
  const std::string& NameOf(int client) const { return centre_.client(client).name; }
  void EndEpochs();
  bool Over();
  int64_t Here() const;  // how many clients
  double timeout_s() const;

  const Setup setup_;
  int64_t life_;  // another one than that of the snapshot it begins with
  ServerState centre_;
  LeaseTable& leases_;                          // the centre's
  PartitionSequencer* const sequencer_;         // ... null: there is one server
  const std::unique_ptr<MemoryLedger> ledger_;  // null: the centre is here
  const std::unique_ptr<HandoutBoard> board_;   // not null: clients take leases by themselves
  ServerKeeper* keeper_ = nullptr;              // since Run
  std::deque<Peer> peers_;
  PushGate gate_;
  std::deque<int> want_weights_;  // clients, in turn (kWait)
  uint64_t bytes_sent_ = 0, bytes_received_ = 0;
  bool stopping_ = false;
  int64_t newest_clock_ = -1;  // of which a shard was leased
  Deadline deserted_since_;
  Deadline looked_at_ = After(0), judges_from_ = After(0);  // who is overdue
  WakeEvent wake_;
};

}  // namespace trireme
