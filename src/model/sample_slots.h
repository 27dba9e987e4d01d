#pragma once
#include <vector>

#include "data/loader.h"
#include "flat/host_memory.h"
#include "graph/engine.h"
#include "model/resident_set.h"

namespace trireme {

// Host memory for the samples that a loader brings to an engine, in the form in which the engine
// takes them: values; bytes, where it changes and normalises them itself; numbers in a set that
// lies on its device.
class SampleSlots {
 public:
  SampleSlots() = default;
  // `count` slots with room for `capacity` samples of the feed each. `set`, which outlives this, is
  // of the feed's source; null: there is none.
  SampleSlots(Engine& engine, const Feed& feed, size_t count, size_t capacity,
              const ResidentSet* set = nullptr);

  const std::vector<Slot>& slots() const { return slots_; }
  // Tells an engine of the samples in a slot.
  void Show(const Filled& filled, Batch& batch) const;

 private:
  Shape shape_;
  size_t values_ = 0;  // of a sample
  bool changes_ = false;
  const ResidentSet* set_ = nullptr;
  HostBuffer<float> inputs_;
  HostBuffer<int32_t> labels_;
  HostBuffer<uint8_t> bytes_;
  HostBuffer<int32_t> numbers_;
  HostBuffer<SampleChange> changed_;
  HostBuffer<LabelMix> mixes_;
  Buffer look_;  // scale and shift of each channel, on the device
  std::vector<Slot> slots_;
};

}  // namespace trireme
