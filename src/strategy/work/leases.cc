#include "strategy/work/leases.h"

#include "base/error.h"

namespace trireme {

Turn Leases::Next(Replica* replica, int64_t, Work& work) {
  if (exchange_.overflowed() && !exchange_.client().leases().holds_void()) {
    work = last_;
    return Turn::kStep;
  }
  for (;;) {
    Lease lease;
    switch (exchange_.client().leases().Claim(exchange_.holds(), lease)) {
      case LeaseSource::Answer::kLease:
        WorkOn(lease, work);
        if (replica->updater.scales_loss()) last_ = work;
        return Turn::kStep;
      case LeaseSource::Answer::kDrain:
        exchange_.Drain(*replica);
        break;
      case LeaseSource::Answer::kVoid:
        exchange_.Discard(*replica);
        break;
      case LeaseSource::Answer::kEnd:
        return Turn::kEnd;
    }
  }
}

void Leases::WorkOn(const Lease& lease, Work& work) {
  if (cut_.shards) {
    const int64_t step = StepOf(plan_, lease.epoch, lease.begin);
    WorkOf(plan_, step, 0, 1, work);
    work.ends_epoch = false;
    std::erase_if(work.shards, [&](const Shard& s) { return s.begin != lease.begin || !s.size(); });
    if (work.shards.size() != 1 || work.shards[0].end != lease.end) {
      throw Error("the server leases positions {} to {} of step {}, which do not form a shard",
                  lease.begin, lease.end, step);
    }
  } else {
    LeasedWork(plan_, lease.epoch, lease.begin, lease.end, work);
  }
  work.leases.assign(1, lease.id);
  if (cut_.own_samples) TakeOwn(work);
}

// As many of the own samples, in their own order.
void Leases::TakeOwn(Work& work) {
  if (own_position_ + work.batch > cut_.own_samples) {
    ++own_epoch_;
    own_position_ = 0;
  }
  work.epoch = own_epoch_;
  work.shards[0].begin = own_position_;
  work.shards[0].end = own_position_ += work.batch;
}

Turn GroupedLeases::Next(Replica* replica, int64_t step, Work& work) {
  if (!leases_) {
    const LeaseGroup::Order order = group_.Hear(*replica);
    if (Turn(order.turn) == Turn::kStep) group_.TakePart(order, work);
    return Turn(order.turn);
  }
  const Turn turn = leases_->Next(replica, step, work);
  LeaseGroup::Order order{.turn = int64_t(turn)};
  if (turn == Turn::kStep) {
    exchange_->TakeNewer(*replica);  // before the step, so that all of the group have them
    const Shard& shard = work.shards[0];
    order.step = work.step;
    order.epoch = work.epoch;
    order.begin = shard.begin;
    order.end = shard.end;
    order.lease = work.leases[0];
  }
  order.moved = exchange_->Moved();
  order.forgets = exchange_->Forgets();
  group_.Tell(*replica, order);
  if (turn == Turn::kStep) group_.TakePart(order, work);
  return turn;
}

}  // namespace trireme
