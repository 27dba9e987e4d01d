#include "model/sample_slots.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "flat/staging.h"

namespace trireme {

SampleSlots::SampleSlots(Engine& engine, const Feed& feed, size_t count, size_t capacity,
                         const ResidentSet* set)
    : shape_{feed.shape().height, feed.shape().width, feed.shape().channels},
      values_(size_t(shape_.size())),
      changes_(feed.changes()),
      set_(set) {
  Device& device = engine.device();
  // Two samples are mixed where they are values.
  const bool bytes = engine.takes_bytes() && feed.source().has_bytes() && !feed.mixes();
  TRIREME_ASSERT(bytes || !set);
  const size_t samples = count * capacity;
  labels_ = {device, samples};
  if (!bytes) {
    inputs_ = {device, samples * values_};
  } else {
    if (set) {
      numbers_ = {device, samples};
    } else {
      bytes_ = {device, samples * values_};
    }
    if (changes_) changed_ = {device, samples};
    std::vector<float> look = feed.normalizer().scale();
    std::ranges::copy(feed.normalizer().shift(), std::back_inserter(look));
    look_ = {device, look.size()};
    flat::PutNow(*device.NewQueue(), look, look_);
  }
  if (feed.mixes_labels()) mixes_ = {device, samples};
  const Slot all{.inputs = inputs_,
                 .labels = labels_,
                 .bytes = bytes_,
                 .numbers = numbers_,
                 .changes = changed_,
                 .mixes = mixes_};
  for (size_t i = 0; i < count; ++i) slots_.push_back(all.Part(i * capacity, capacity, values_));
}

void SampleSlots::Show(const Filled& filled, Batch& batch) const {
  const auto count = size_t(filled.count);
  const Slot slot = slots_[size_t(filled.slot)].Part(0, count, values_);
  batch.count = filled.count;
  batch.inputs = slot.inputs;
  batch.labels = slot.labels;
  batch.mixes = slot.mixes;
  batch.bytes = {.shape = shape_,
                 .samples = slot.bytes,
                 .set = set_ ? set_->bytes() : Slice(),
                 .numbers = slot.numbers,
                 .changes = slot.changes,
                 .look = look_};
}

}  // namespace trireme
