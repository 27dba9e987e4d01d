#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flat/layout.h"
#include "graph/graph.h"
#include "transport/group.h"

namespace trireme {

// Whether all ranks that advance in step still hold the same weights and statistics: a hash of 8
// bytes per rank travels, and only if one differs those of all tensors.
class WeightCheck {
 public:
  WeightCheck(Group& group, const Graph& graph, const Layout& layout);

  // Every member calls it, with its state after `step` steps. Throws an Error that names the rank
  // that differs from most others, and its first tensor that does.
  void Run(int64_t step, std::span<const float> state);

 private:
  struct Tensor {
    std::string name;
    Range range;
  };

  Group& group_;
  std::vector<Tensor> tensors_;   // in the order of the graph
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

uint64_t HashOfValues(std::span<const float> values);  // of their bits

}  // namespace trireme
