#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "flat/device.h"
#include "flat/layout.h"
#include "graph/graph.h"
#include "transport/group.h"

namespace trireme {

// Whether all ranks that advance in step still hold the same weights and statistics. Each device
// makes a digest of every tensor (flat::Digest); a hash of 8 bytes per rank travels, and only if
// one differs those of all tensors.
class WeightCheck {
 public:
  WeightCheck(Group& group, const Graph& graph, const Layout& layout, Device& device);

  // Every member calls it, with its state after `step` steps. Throws an Error that names the rank
  // that differs from most others, and its first tensor that does. Blocks until the queue has
  // passed.
  void Run(int64_t step, Queue& queue, Slice state);

 private:
  Group& group_;
  std::vector<std::string> names_;  // of the tensors, in the order of the graph
  std::vector<Range> ranges_;
  const Buffer digests_;
  std::vector<uint64_t> hashes_;  // of this rank's
};

// What WeightCheck says of ranks' hashes, [rank][tensor]; empty if all are equal. The odd one out
// is the rank that differs from the hashes that most ranks hold; of equally many, from rank 0's.
struct OddRank {
  int rank = 0;
  size_t tensor = 0;
  int like = 0;  // the rank with what most hold
};
std::vector<OddRank> FindOddRanks(const std::vector<std::vector<uint64_t>>& hashes);

}  // namespace trireme
