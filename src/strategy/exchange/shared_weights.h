#pragma once
#include <atomic>
#include <cstdint>

#include "strategy/exchange/server_client.h"
#include "strategy/inner/hogwild.h"

namespace trireme {

// Weights that the workers of a team read and write without locks, and where the centre's come in
// now and then: the first of the team brings them (Noel, Osindero 2014). Of each worker one, on its
// thread; all make it at the same time.
class SharedWeights {
 public:
  SharedWeights(Group& team, InnerHogwild& inner);
  bool leads() const { return team_.rank() == 0; }
  // Of the centre that the weights come from, and the team's own updates since.
  int64_t version() const { return board_->version.load(); }
  void Put(Replica& replica, const ServerClient::Snapshot& centre);
  void Meet();  // all of the team

 private:
  struct Board {
    alignas(64) std::atomic<int64_t> version;
  };
  Group& team_;
  InnerHogwild& inner_;
  Board* board_;
};

}  // namespace trireme
