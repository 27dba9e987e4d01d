#pragma once
#include <atomic>
#include <cstdint>

#include "strategy/exchange/centre.h"
#include "strategy/inner/hogwild.h"

namespace trireme {

// Weights that the workers of a group read and write without locks, and where the centre's come in
// now and then: the first of the group brings them (Noel, Osindero 2014). Of each worker one, on
// its thread; all make it at the same time.
class SharedWeights {
 public:
  SharedWeights(Group& group, InnerHogwild& inner);
  bool leads() const { return group_.rank() == 0; }
  // Of the centre that the weights come from, and the group's own updates since.
  int64_t version() const { return board_->version.load(); }
  void Put(Replica& replica, const Centre::Snapshot& centre);
  void Meet();  // all of the group

 private:
  struct Board {
    alignas(64) std::atomic<int64_t> version;
  };
  Group& group_;
  InnerHogwild& inner_;
  Board* board_;
};

}  // namespace trireme
