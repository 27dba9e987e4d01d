#pragma once
#include <vector>

#include "strategy/inner/inner.h"
#include "transport/shared_memory.h"

namespace trireme {

// Hogwild (Recht, Re, Wright, Niu 2011): all replicas read and write one state, without locks. Each
// has its own summand and its own optimizer memory. Where the group's ranks share memory.
//
// Staleness of an update is the number of updates that others made since its forward began.
class InnerHogwild : public Inner {
 public:
  explicit InnerHogwild(Group& group);

  Slice Place(Role role, size_t floats, Device& device) override;
  bool SharesState() const override { return true; }
  bool OnlyUpdates() const override { return true; }
  void Begin(Replica& replica) override;
  void BeforeStep(Replica& replica) override;
  void Agree(Replica& replica, FunctionRef<void()> update) override;

  std::vector<ClientStats> worker_stats() const override;

 private:
  // In the memory of all: the number of updates, and for each replica its samples and its counts by
  // staleness.
  struct Board;

  Group& group_;
  Board* board_ = nullptr;
  int64_t seen_ = 0;
};

}  // namespace trireme
