#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/team.h"
#include "flat/cpu/host.h"
#include "strategy/server/rule.h"
#include "strategy/server/server.h"
#include "transport/link.h"

namespace trireme {

// A server but the first, where the centre lies on several: holds its partition, checks and keeps
// the partitions of pushes until the first server says what becomes of them, and answers fetches. A
// client's fetch waits until what that client sent before has been decided: it sees its own
// updates, as with one server. When the first is another one, this one begins anew with what that
// sends. One thread.
class PartitionServer : public Server {
 public:
  struct Setup {
    Link* first = nullptr;
    std::vector<Link*> clients;  // in the order of the first server's
    size_t floats = 0;           // of the partition
    int threads = 1;             // that work on an update
    std::function<std::unique_ptr<ServerRule>(Device&)> rule;
    std::function<void()> applied;  // hears of every push that counts
    bool broadcasts = false;        // offers every new state of the partition to all
    const Log* log = nullptr;
  };
  explicit PartitionServer(Setup setup);

  void Load(const StateReader& reader) override;
  void Run(ServerKeeper* keeper) override;
  std::span<const float> centre() const override { return partition_.slice().host(); }
  void Save(StateWriter& writer) const override;
  Progress progress() const override { return {}; }  // the first server's business
  std::vector<ClientStats> clients() const override { return {}; }

 private:
  // What a client said and has no answer yet: a partition of a push, or a fetch.
  struct Word {
    bool fetch = false;
    int64_t number = 0;  // of the fetch, or the lease
  };
  struct Peer {
    Link* link;
    std::deque<Word> open;
    bool named = false;  // said something wrong once
  };
  using Key = std::pair<int64_t, int>;  // of a push: its first lease, and whose it is
  struct Held {
    bool good = false;
    std::vector<float> body;  // if it is
  };

  bool HearFirst();
  bool HearClients();
  void Obey(Message& message);
  void Begin(Message& message);
  void Hear(int client, Message& message);
  void Keep(int client, Message& message);
  void Tell(const Key& push, bool good);  // the first
  void ForgetOthers(int64_t life);
  void Apply(const Message& message);
  void Decided(const Key& push);
  void Answer(int client);
  void Broadcast();
  void PassOn(int signal);

  const Setup setup_;
  Team team_;
  HostDevice device_;
  std::unique_ptr<Queue> queue_;
  Buffer partition_;
  std::unique_ptr<ServerRule> rule_;
  std::deque<Peer> peers_;
  std::map<Key, Held> held_;
  bool loaded_ = false, over_ = false;
  bool changed_ = false;  // since the last broadcast
  bool told_ = false;     // the first: a signal
  bool alone_ = false;    // the first server is gone
  Deadline alone_since_;
  WakeEvent wake_;
};

}  // namespace trireme
