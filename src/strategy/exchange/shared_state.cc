#include "strategy/exchange/shared_state.h"

#include "flat/arithmetic.h"

namespace trireme {

void SharedState::TakeImage(Replica& r) {
  if (!image_.slice().device) image_ = Buffer(r.device, r.state.size);
  flat::Copy(r.queue, r.state, image_);
  r.queue.Sync();
  image_taken_ = moment_.taken();
  image_workers_ = inner_.worker_stats();
  image_is_new_ = true;
}

void SharedState::Snapshot(Replica& r, Slice into) {
  if (!image_is_new_) moment_.quiet([&] { TakeImage(r); });
  flat::Copy(r.queue, image_, into);
}

std::vector<ClientStats> SharedState::worker_stats() const {
  return image_is_new_ ? image_workers_ : inner_.worker_stats();
}

}  // namespace trireme
