#pragma once
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "strategy/server/lease_table.h"

namespace trireme {

// Who computes which portion of a gradient, and whose answer counts. A fast worker takes more; when
// none is left, portions that others have not answered are given out a second time, and the first
// answer counts (backup tasks: Dean et al. 2012). Knows numbers only. One thread.
class PortionBoard {
 public:
  PortionBoard(int portions, bool backups);

  void Begin();  // the next gradient; the last one is over

  // A portion for a worker that holds none that it has not answered with or lost, besides those
  // that it will answer together with this one. Nothing: all that is open is in good hands.
  std::optional<int> Take(int worker);
  bool few_left(int workers) const;  // now each portion should be answered for itself

  // The sum over these portions is there. It counts as a whole or not at all: not if another worker
  // was first with one of them; what else it held is then to be taken again.
  bool Answer(int worker, std::span<const int64_t> portions);

  bool over() const { return leases_.epoch_over(); }
  int64_t given_twice() const { return given_twice_; }  // of all gradients

 private:
  struct Holders {
    int64_t lease = -1;  // of the table
    int second = kNobody;
  };
  bool Holds(int worker, int64_t portion) const;

  const bool backups_;
  LeaseTable leases_;  // of portions; a gradient is an epoch
  std::vector<Holders> holders_;
  bool begun_ = false;
  int64_t given_twice_ = 0;
};

}  // namespace trireme
