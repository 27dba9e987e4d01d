#include "strategy/exchange/exchange.h"

#include "flat/arithmetic.h"

namespace trireme {

void Exchange::Snapshot(Replica& replica, Slice into) {
  flat::Copy(replica.queue, replica.state, into);
}

}  // namespace trireme
