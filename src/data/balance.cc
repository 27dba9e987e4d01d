#include "data/balance.h"

#include <algorithm>

namespace trireme {

std::vector<float> BalancedWeights(const Source& train, int classes) {
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  int64_t labelled = 0;
  for (int64_t i = 0; i < train.size(); ++i) {
    const int32_t label = train.label(i);
    if (label < 0) continue;
    ++counts[static_cast<size_t>(label)];
    ++labelled;
  }
  const auto there =
      static_cast<double>(classes - std::count(counts.begin(), counts.end(), int64_t{0}));
  std::vector<float> weights;
  for (const int64_t count : counts) {
    weights.push_back(count == 0 ? 0.0f : static_cast<float>(double(labelled) / (there * count)));
  }
  return weights;
}

}  // namespace trireme
