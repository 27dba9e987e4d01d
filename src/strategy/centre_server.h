#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "flat/host.h"
#include "strategy/lease_table.h"
#include "strategy/strategy.h"
#include "transport/link.h"

namespace trireme {

// A server rank of a free pace: holds the centre, hands out leases, merges what is pushed on
// arrival. Centre, leases and version change together, so a snapshot holds all three of one moment:
// restarted from it, positions whose updates it does not hold are leased again.
// One thread; clients come over links. What a client says is checked before it counts.
class CentreServer : public Server {
 public:
  // What a push does to the centre.
  using Merge = std::function<void(Queue&, Slice pushed, Slice centre)>;

  struct Setup {
    std::vector<Link*> clients;
    int64_t samples = 0;    // of an epoch
    int64_t positions = 0;  // of the run
    int64_t lease = 1;      // positions at a time
    Merge merge;
  };
  CentreServer(Setup setup, std::span<const float> centre);

  void Load(const StateReader& reader) override;
  void Run() override;

  // After Run, or before it, on the same thread.
  const LeaseTable& leases() const { return leases_; }
  std::span<const float> centre() const { return centre_.slice().host(); }
  int64_t version() const { return version_; }  // pushes that counted
  int64_t refused() const { return refused_; }
  // staleness()[s]: pushes whose centre was s versions old; the last entry: or older.
  const std::vector<int64_t>& staleness() const { return staleness_; }
  void OnClose(std::function<void(const Lease&)> seen) { seen_ = std::move(seen); }

 private:
  enum class Presence { kHere, kGone, kBye };
  struct Peer {
    Link* link;
    Presence presence = Presence::kHere;
    bool asks = false;   // waits for an answer
    bool holds = false;  // ... and has work to push
    int64_t wants = 1;   // leases at most
    bool left = false;
    int64_t told = 0;  // epochs whose end it knows
  };

  void Hear(int client, Arrival arrival, Message& message);
  void Handle(int client, Message& message);
  void Push(int client, Message& message);
  bool Belongs(int client, const Message& push) const;
  void Refuse(int client);
  void Answer(int client);
  Message Grant(int client);  // without leases: there are none
  void SendCentre(Link& link, int word, std::vector<int64_t> ints);
  int64_t EpochsEnded() const;
  bool Over();

  const Setup setup_;
  HostDevice device_;
  std::unique_ptr<Queue> queue_;
  Buffer centre_;
  LeaseTable leases_;
  std::vector<Peer> peers_;
  int64_t version_ = 0, refused_ = 0;
  std::vector<int64_t> staleness_;
  int diverged_ = 0;  // pushes since the last finite one
  bool stopping_ = false;
  Deadline deserted_;         // when nobody who may return has done so
  std::vector<float> spare_;  // the body of the last push carries the next centre
  std::function<void(const Lease&)> seen_;
  Bell bell_;
};

}  // namespace trireme
