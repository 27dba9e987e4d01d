#include "strategy/work/lease_group.h"

#include <algorithm>

#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {

void LeaseGroup::Tell(Replica& replica, Order order) {
  Broadcast(group_, kTagLease, 0, std::as_writable_bytes(std::span(&order, 1)));
  if (order.moved) ShareWeights(replica);
}

LeaseGroup::Order LeaseGroup::Hear(Replica& replica) {
  Order order;
  Broadcast(group_, kTagLease, 0, std::as_writable_bytes(std::span(&order, 1)));
  if (order.moved) ShareWeights(replica);
  if (order.forgets) replica.updater.Reset(replica.queue);
  return order;
}

void LeaseGroup::ShareWeights(Replica& r) {
  if (!staging_) staging_.emplace(r.device, r.state.size);
  if (leads()) staging_->Get(r.queue, r.state, 0);
  r.queue.Sync();
  Broadcast(group_, kTagState, 0, std::as_writable_bytes(staging_->Host(r.state, 0)));
  if (leads()) return;
  staging_->Put(r.queue, r.state, 0);
  r.queue.Sync();
}

void LeaseGroup::TakePart(const Order& order, Work& work) const {
  const int64_t count = order.end - order.begin, size = group_.size(), own = group_.rank();
  work.step = order.step;
  work.epoch = order.epoch;
  work.batch = count;
  work.filled_shards = int(std::min(count, size));
  work.ends_epoch = false;
  work.shards.assign(1, {.index = int(own),
                         .begin = order.begin + count * own / size,
                         .end = order.begin + count * (own + 1) / size});
  work.leases.assign(1, order.lease);
}

}  // namespace trireme
