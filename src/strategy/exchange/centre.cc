#include "strategy/exchange/centre.h"

#include <algorithm>

#include "flat/arithmetic.h"
#include "flat/staging.h"

namespace trireme {

void Centre::Put(Queue& queue, const Snapshot& centre, Slice into) {
  if (queue.device().host_visible()) return flat::PutNow(queue, centre.state, into);
  HostBuffer<float> staged = staging_.Take(queue.device(), into.size);
  std::ranges::copy(centre.state, staged.values().begin());
  flat::Put(queue, staged, into);
  queue.Sync();
  staging_.GiveBack(std::move(staged));
}

int64_t TakeCentre(Centre& centre, Replica& replica) {
  const Centre::Snapshot taken = centre.Fetch(replica.state.size);
  centre.Put(replica.queue, taken, replica.state);
  return taken.version;
}

}  // namespace trireme
