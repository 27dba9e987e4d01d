#pragma once
#include <vector>

#include "base/state_image.h"
#include "flat/layout.h"
#include "transport/message.h"

namespace trireme {

// A centre that lies on several servers (strategy.servers; Dean et al. 2012): each holds a
// partition, a stretch of the flat state, and the optimizer's memory for it.

// What server `index` of `servers` holds of a state of so many floats; begins at an aligned place.
Range PartitionOf(size_t floats, int index, int servers);

// The layout of a stretch of a state, as if that were all.
Layout CutLayout(const Layout& layout, Range partition);

// What a rule keeps for its partition, in the order in which it saves it: tensors with one value
// for each weight, and whole numbers. Throws for any other kind: no rule that works on partitions
// has one.
struct RuleMemory {
  std::vector<StateImage::Values*> tensors;
  std::vector<int64_t*> numbers;
};
RuleMemory MemoryIn(StateImage& image);
void Assign(StateImage::Values& tensor, std::span<const float> values);  // and its shape

// A partition and what its rule keeps, as one message; without `memory` the rule begins anew.
Message PackPartition(int word, std::span<const float> state, StateImage* memory);
// The other way: `memory` has the names, and sizes where they are known; false: there is none.
// Throws Error where sizes do not fit.
bool UnpackPartition(const Message& message, std::span<float> state, StateImage& memory);

}  // namespace trireme
