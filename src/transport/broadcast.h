#pragma once
#include <span>
#include <vector>

#include "transport/group.h"

namespace trireme {

// Every member calls these.

// bytes = those of rank `root`. A binomial tree: log2 N steps, each rank receives once.
void Broadcast(Group& group, Tag tag, int root, std::span<std::byte> bytes);

// Returns when all have called it. Dissemination (Hensgen, Finkel, Manber 1988): log2 N steps, no
// bytes.
void Barrier(Group& group, Tag tag);

// At rank `root` all members' values, in the order of their ranks; elsewhere nothing. The lengths
// may differ. N - 1 messages to the root, all at once; the values travel once.
std::vector<std::vector<double>> Gather(Group& group, Tag tag, int root,
                                        std::span<const double> values);

}  // namespace trireme
