#include "strategy/exchange/shared_weights.h"

#include "flat/arithmetic.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"
#include "transport/shared_memory.h"

namespace trireme {

SharedWeights::SharedWeights(Group& group, InnerHogwild& inner) : group_(group), inner_(inner) {
  const auto memory = AllocateForAll(group, kTagLease, sizeof(Board) / sizeof(float));
  board_ = reinterpret_cast<Board*>(memory.data());
}

// A write like every other of Hogwild: it goes through the file that holds the races.
void SharedWeights::Put(Replica& replica, const Centre::Snapshot& centre) {
  inner_.Agree(replica, [&] { flat::Put(replica.queue, centre.state, replica.state); });
  board_->version.store(centre.version);
}

void SharedWeights::Meet() { Barrier(group_, kTagLease); }

}  // namespace trireme
