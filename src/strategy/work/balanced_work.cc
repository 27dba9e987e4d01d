#include "strategy/work/balanced_work.h"

#include <algorithm>
#include <numeric>

#include "strategy/step/split.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

constexpr const char* kShards = "balance.shards";  // by worker

}  // namespace

BalancedWork::BalancedWork(Group& group, const Plan& plan, int servers)
    : group_(group), plan_(plan), servers_(servers), shards_(size_t(servers)) {
  const std::vector<int> equal = EqualSplit(plan.shards, group.size() - servers);
  shards_.insert(shards_.end(), equal.begin(), equal.end());
}

Turn BalancedWork::Next(Replica*, int64_t step, Work& work) {
  if (step >= plan_.steps) return Turn::kEnd;
  const int64_t epoch = step / plan_.steps_per_epoch();
  if (epoch_ < 0) {
    epoch_ = epoch;
    first_step_ = step;
  }
  if (epoch > epoch_) return Turn::kEpochEnd;
  const auto own = shards_.begin() + group_.rank();
  const int first = std::accumulate(shards_.begin(), own, 0);
  WorkOf(plan_, step, {first, first + *own}, work);
  return Turn::kStep;
}

int64_t BalancedWork::OwnSamples(int64_t first_step, int64_t end_step) {
  int64_t samples = 0;
  for (int64_t step = first_step; step < end_step; ++step) {
    if (Next(nullptr, step, work_) != Turn::kStep) break;
    for (const Shard& shard : work_.shards) samples += shard.size();
  }
  return samples;
}

void BalancedWork::EndEpoch(double seconds) {
  const int64_t end_step = (epoch_ + 1) * plan_.steps_per_epoch();
  const int64_t samples = OwnSamples(first_step_, end_step);
  const double own = samples > 0 ? seconds / double(samples) : 0;
  const std::vector<double> all = AllGather(group_, kTagBalance, own);
  const std::span<const double> workers = std::span(all).subspan(size_t(servers_));
  ++epoch_;
  first_step_ = end_step;
  // Who had no samples, or a clock that did not move, tells nothing: all stays as it is.
  if (!std::ranges::all_of(workers, [](double s) { return s > 0; })) return;
  std::ranges::copy(SplitByRate(plan_.shards, workers), shards_.begin() + servers_);
}

void BalancedWork::Save(StateWriter& writer) const {
  writer.Ints(kShards, std::vector<int64_t>(shards_.begin() + servers_, shards_.end()));
}

// Another number of workers, or a run that was not balanced, begins with equal parts.
void BalancedWork::Load(const StateReader& reader) {
  if (!reader.Has(kShards)) return;
  const std::vector<int64_t> saved = reader.Ints(kShards);
  const bool fits = saved.size() == shards_.size() - size_t(servers_) &&
                    std::accumulate(saved.begin(), saved.end(), int64_t{0}) == plan_.shards &&
                    std::ranges::all_of(saved, [](int64_t n) { return n > 0; });
  if (fits) std::ranges::copy(saved, shards_.begin() + servers_);
}

}  // namespace trireme
