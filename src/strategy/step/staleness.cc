#include "strategy/step/staleness.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace trireme {

void Staleness::Add(int64_t versions) {
  const size_t at = std::min(size_t(std::max<int64_t>(0, versions)), kMost);
  if (counts_.size() <= at) counts_.resize(at + 1);
  ++counts_[at];
}

void Staleness::Add(const Staleness& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
}

int64_t Staleness::updates() const {
  return std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
}

double Staleness::mean() const {
  double sum = 0;
  for (size_t i = 0; i < counts_.size(); ++i) sum += double(i) * double(counts_[i]);
  const int64_t all = updates();
  return all ? sum / double(all) : 0;
}

Staleness Staleness::Of(std::span<const int64_t> counts) {
  const bool possible =
      counts.size() <= kMost + 1 &&
      std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n >= 0 && n < 1LL << 50; });
  if (!possible) throw Error("{} saved numbers cannot be counts of staleness", counts.size());
  Staleness staleness;
  staleness.counts_.assign(counts.begin(), counts.end());
  while (!staleness.counts_.empty() && staleness.counts_.back() == 0) staleness.counts_.pop_back();
  return staleness;
}

}  // namespace trireme
