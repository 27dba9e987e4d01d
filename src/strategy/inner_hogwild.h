#pragma once
#include <atomic>
#include <vector>

#include "strategy/inner.h"
#include "transport/commons.h"

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
  void Begin(Replica& replica) override;
  void BeforeStep(Replica& replica) override;
  void Agree(Replica& replica, FunctionRef<void()> update) override;

  // staleness()[s]: own updates that were s behind; the last entry: or more.
  const std::vector<int64_t>& staleness() const { return staleness_; }

 private:
  Group& group_;
  std::atomic<int64_t>* updates_ = nullptr;  // of all, in the memory of all
  int64_t seen_ = 0;
  std::vector<int64_t> staleness_;
};

}  // namespace trireme
