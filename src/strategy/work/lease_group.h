#pragma once
#include <optional>

#include "flat/staging.h"
#include "strategy/server/lease_table.h"
#include "strategy/step/replica.h"
#include "transport/group.h"

namespace trireme {

// Workers that work on the same leases and sum their gradients: the first of them talks with the
// server, the others follow it. Each takes its part of a lease's positions. Called on the workers'
// threads; all of a group call the same things in the same order.
class LeaseGroup {
 public:
  explicit LeaseGroup(Group& group) : group_(group) {}
  bool leads() const { return group_.rank() == 0; }

  // What the leader tells before each step.
  struct Order {
    int64_t turn = 0;     // Turn
    int64_t moved = 0;    // weights follow: the centre has changed the leader's
    int64_t forgets = 0;  // momentum
    int64_t step = 0, epoch = 0, begin = 0, end = 0, lease = 0;
  };
  void Tell(Replica& replica, Order order);  // the leader
  Order Hear(Replica& replica);              // the others; their weights are the leader's
  void TakePart(const Order& order, Work& work) const;

 private:
  void ShareWeights(Replica& replica);

  Group& group_;
  std::optional<Staging> staging_;  // of the weights, since they were shared first
};

}  // namespace trireme
