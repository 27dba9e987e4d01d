#include "strategy/work/shared_work.h"

#include "flat/arithmetic.h"

namespace trireme {
namespace {

constexpr const char* kTaken = "handout.taken";
constexpr const char* kEpochsTold = "handout.epochs_told";

}  // namespace

void SharedState::TakeImage(Replica& r) {
  if (!image_.slice().device) image_ = Buffer(r.device, r.state.size);
  flat::Copy(r.queue, r.state, image_);
  r.queue.Sync();
  image_taken_ = queue_->taken();
  image_workers_ = inner_.worker_stats();
  image_is_new_ = true;
}

void SharedState::Snapshot(Replica& r, Slice into) {
  if (!image_is_new_) queue_->Quiet([&] { TakeImage(r); });
  flat::Copy(r.queue, image_, into);
}

std::vector<ClientStats> SharedState::worker_stats() const {
  return image_is_new_ ? image_workers_ : inner_.worker_stats();
}

void SharedWork::Save(StateWriter& writer) const {
  writer.Int(kTaken, state_.image_taken());
  writer.Int(kEpochsTold, state_.queue().epochs_told());
}

void SharedWork::Load(const StateReader& reader) {
  state_.queue().Load(reader.Int(kTaken), reader.Int(kEpochsTold));
}

}  // namespace trireme
