#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/team.h"
#include "flat/cpu/host.h"
#include "strategy/server/lease_table.h"
#include "strategy/server/partition_sequencer.h"
#include "strategy/server/rule.h"
#include "strategy/server/server.h"
#include "transport/link.h"

namespace trireme {

// A push that was found good.
struct GoodPush {
  int client = 0;
  Message message;
  std::vector<int64_t> leases;
  int64_t samples = 0;

  int64_t version() const { return message.ints[0]; }  // that it was made from
};

// What changes together: the common values, their version, which positions are in them, and who
// brought how much. So what is saved is all of one moment. One thread: the server's.
class ServerState {
 public:
  using MakeRule = std::function<std::unique_ptr<ServerRule>(Device&)>;
  // `sequencer`, if not null: the values lie on several servers, and here is the first of them.
  // `threads`: that work on an update.
  ServerState(const MakeRule& rule, LeaseTable leases, std::span<const float> values,
              std::unique_ptr<PartitionSequencer> sequencer, int threads = 1);

  LeaseTable& leases() { return leases_; }
  const LeaseTable& leases() const { return leases_; }
  int64_t version() const { return version_; }
  PartitionSequencer* sequencer() const { return sequencer_.get(); }
  std::span<const float> whole() const { return sequencer_ ? sequencer_->whole() : partition(); }
  std::span<const float> partition() const { return values_.slice().host(); }  // of this server

  void AddClient(std::string name) { clients_.push_back({.name = std::move(name)}); }
  ClientStats& client(int c) { return clients_[c]; }
  const ClientStats& client(int c) const { return clients_[c]; }
  std::span<const ClientStats> clients() const { return clients_; }

  // `step`: the run's progress, for schedules. `share`: less than 1 for what is too stale.
  void Apply(std::span<GoodPush> parts, int64_t step, float share);
  // A push that was applied elsewhere: to values that are not this server's (see MemoryLedger).
  void Added(const GoodPush& push);
  std::span<float> values() { return values_.slice().host(); }  // ... which these become at times
  void OnClose(std::function<void(const Lease&)> seen) { seen_ = std::move(seen); }
  void NextEpoch();
  Server::Progress progress() const;  // without bytes

  // A message with this server's values as they are: the same one until something changes.
  std::shared_ptr<const Message> Carry(int kind, std::vector<int64_t> ints);

  void Gather() const;  // a moment of all servers, which `whole` and Save then show
  void Save(StateWriter& writer) const;
  void Load(const StateReader& reader, int64_t new_ids);

 private:
  void Count(const GoodPush& push);
  std::vector<int64_t> SaveClients() const;
  void LoadClients(std::span<const int64_t> saved);

  Team team_;
  HostDevice device_;
  std::unique_ptr<Queue> queue_;
  const std::unique_ptr<PartitionSequencer> sequencer_;
  Buffer values_;
  std::unique_ptr<ServerRule> rule_;
  LeaseTable leases_;
  int64_t version_ = 0;  // updates, clocks or rounds
  Server::Progress progress_;
  std::vector<ClientStats> clients_;
  std::vector<float> spare_;  // the body of the last push carries the next centre
  std::vector<std::shared_ptr<const Message>> carried_;  // of this version, one for each kind
  std::function<void(const Lease&)> seen_;
};

}  // namespace trireme
