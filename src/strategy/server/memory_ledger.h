#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/log.h"
#include "strategy/server/centre_note.h"
#include "strategy/server/server_state.h"
#include "transport/memory.h"

namespace trireme {

// The regions of a centre in remote memory.
constexpr const char* kCentreRegion = "centre";
constexpr const char* kFenceRegion = "centre.fences";  // a number for each client
constexpr int64_t kMostFences = 4096;

// A centre in remote memory, as the server that leases sees it. Workers add to it by themselves;
// each add's note names leases, and this closes what the region's ring says, in its order.
//
// An add holds only while its client's fence is the one that came with the leases. Before a
// client's leases are given to others its fence moves, so none of them can count twice. Where
// leases are not granted but taken (see HandoutBoard), notes name those that their clients took.
//
// One thread: the server's.
class MemoryLedger {
 public:
  struct Setup {
    double timeout_s = 60;
    bool handout = false;  // clients take leases by themselves
    const Log* log = nullptr;
  };
  MemoryLedger(Memory& memory, ServerState& state, const Setup& setup);
  ~MemoryLedger();

  // Before anything is leased: the centre becomes what the state has. Nothing that is under way by
  // older leases counts any more. An Error where another run's server uses the box.
  void Begin();
  // Closes the leases of what was added since the last call; false: nothing was.
  bool Read() { return ReadTo(std::numeric_limits<uint64_t>::max()); }
  uint64_t read() const { return read_; }  // of the centre's versions: the newest one
  // What the client has not added by now it will not, for leases that it has; the rest is read.
  void Fence(int client);
  int64_t fence(int client) const { return fences_[size_t(client)]; }
  // The state's values become the centre's, and all that is in them is read: nothing more.
  void Gather();

 private:
  bool ReadTo(uint64_t version);
  void Take(const RegionNote& entry);
  void FollowTo(int64_t id);
  const char* Fault(const CentreNote& note) const;

  Memory& memory_;
  ServerState& state_;
  const Setup setup_;
  Region centre_, fence_region_;
  std::vector<int64_t> fences_;
  uint64_t read_ = 0;   // the newest version of the region whose note was read
  int64_t origin_ = 0;  // the region's version when the state's was 0, had it been there then
  bool locked_ = false;
  bool named_ = false;  // a note that cannot be; the rest is only counted
};

}  // namespace trireme
