#pragma once
#include <span>

#include "transport/group.h"

namespace trireme {

// values = the sum of all ranks' values, the same bits on every rank. Every member calls it.
//
// A ring (Patarasuk, Yuan 2009). N ranks, n values: 2 (N - 1) steps, 2 (N - 1) / N n values sent
// and as many received by each rank. The order of additions depends on the number of ranks.
// `scratch` holds what has arrived and is not added yet: kRingScratch values or more.
constexpr size_t kRingScratch = 2 << 16;
void AllReduceSum(Group& group, Tag tag, std::span<float> values, std::span<float> scratch);

// For the few numbers of a trainer (losses, counts): takes its own scratch memory.
void AllReduceSum(Group& group, Tag tag, std::span<double> values);

}  // namespace trireme
