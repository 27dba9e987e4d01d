#include "strategy/step/split.h"

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>

#include "base/assert.h"

namespace trireme {

std::vector<int> EqualSplit(int shards, int workers) {
  std::vector<int> split;
  for (int64_t w = 0; w < workers; ++w) {
    split.push_back(int(shards * (w + 1) / workers - shards * w / workers));
  }
  return split;
}

// Each shard to the worker that would be done with it first: optimal, since all shards are alike.
std::vector<int> SplitByRate(int shards, std::span<const double> seconds_per_sample) {
  const int workers = int(seconds_per_sample.size());
  TRIREME_ASSERT(workers > 0 && shards >= workers);
  using Done = std::pair<double, int>;  // with one shard more, and who
  std::priority_queue<Done, std::vector<Done>, std::greater<>> next;
  std::vector<int> split(size_t(workers), 1);
  for (int w = 0; w < workers; ++w) next.push({2 * seconds_per_sample[size_t(w)], w});
  for (int left = shards - workers; left > 0; --left) {
    const int w = next.top().second;
    next.pop();
    ++split[size_t(w)];
    next.push({(split[size_t(w)] + 1) * seconds_per_sample[size_t(w)], w});
  }
  return split;
}

}  // namespace trireme
