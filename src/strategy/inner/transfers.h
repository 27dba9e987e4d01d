#pragma once
#include <vector>

#include "transport/group.h"

namespace trireme {

// Transfers that go on together. None is left when the scope ends, in an error either: their bytes
// may be the caller's own. The vector keeps its memory for the next ones.
class Transfers {
 public:
  explicit Transfers(std::vector<Ticket>& tickets) : tickets_(tickets) {}
  ~Transfers() { tickets_.clear(); }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  void Add(Ticket ticket) { tickets_.push_back(std::move(ticket)); }
  void Wait() {
    for (Ticket& ticket : tickets_) ticket.Wait();
  }

 private:
  std::vector<Ticket>& tickets_;
};

}  // namespace trireme
