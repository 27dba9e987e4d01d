#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "strategy/batch/protocol.h"
#include "transport/wake_event.h"
#include "transport/world.h"

namespace trireme {

// This rank's links with all others. Send is for any thread, the rest for one. A rank that is gone
// ends the job: PeerLost.
class Peers {
 public:
  explicit Peers(World& world);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  int rank() const { return rank_; }
  int size() const { return int(links_.size()); }
  void Send(int rank, Message message);

  // The next message of a rank, if there is one.
  bool Take(int rank, Message& message);
  // Blocks until something may have come, Wake was called, or a second is over.
  void Wait();
  void Wake() { wake_.Notify(); }  // any thread

  // Throws Error: `rank` said something that it does not say.
  [[noreturn]] void Refuse(int rank, const Message& message) const;

  uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }  // bytes
  uint64_t received() const { return received_; }

 private:
  const int rank_;
  std::vector<Link*> links_;  // by rank; null: this one
  WakeEvent wake_;
  std::atomic<uint64_t> sent_ = 0;
  uint64_t received_ = 0;
};

}  // namespace trireme
