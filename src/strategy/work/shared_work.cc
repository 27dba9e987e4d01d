#include "strategy/work/shared_work.h"

namespace trireme {
namespace {

constexpr const char* kTaken = "handout.taken";
constexpr const char* kEpochsTold = "handout.epochs_told";

}  // namespace

void SharedWork::Save(StateWriter& writer) const {
  writer.Int(kTaken, state_.image_taken());
  writer.Int(kEpochsTold, queue_->epochs_told());
}

void SharedWork::Load(const StateReader& reader) {
  queue_->Load(reader.Int(kTaken), reader.Int(kEpochsTold));
}

}  // namespace trireme
