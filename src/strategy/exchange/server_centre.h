#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "strategy/exchange/centre.h"
#include "strategy/exchange/lease_client.h"
#include "strategy/exchange/server_line.h"

namespace trireme {

// A centre that servers keep, over the line on which the first of them hands out work. The newest
// one that they offer replaces one that was not taken yet; of several servers each offers its
// partition, and there is news when all have.
class ServerCentre final : public Centre, public ServerLine::Listener {
 public:
  ServerCentre(ServerLine& line, const LeaseClient& leases);

  void Prefetch() override;
  Snapshot Fetch(size_t floats, bool computes = false) override;
  Snapshot FetchNow(size_t floats) override;
  std::optional<Snapshot> Prefetched(size_t floats) override;
  std::optional<Snapshot> News(size_t floats) override;
  void Push(Queue& queue, Slice change, const PushHead& head, std::span<const int64_t> leases,
            std::vector<float> memory = {}) override;
  std::optional<Snapshot> Answered(size_t floats) override;
  bool holds_void() const override { return leases_.holds_void(); }

  bool Hear(size_t server, Message& message) override;
  void Renewed(size_t server) override;

 private:
  Snapshot TakeReply(size_t floats);
  static Snapshot Unpack(Message message, size_t floats);
  void AskForCentre(bool computes = false);
  void TakePartition(size_t server, int64_t fetch, Message& message);

  ServerLine& line_;
  const LeaseClient& leases_;

  // Guarded by the line.
  bool fetching_ = false;
  int64_t fetches_ = 0;  // the number of the last one
  std::vector<Message>
      partitions_;                // of several servers: what has come of it; kind -1: nothing yet
  std::optional<Message> reply_;  // a centre that was asked for
  std::vector<std::optional<Message>> news_;  // by server
};

}  // namespace trireme
