#include "health/straggler.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace trireme {
namespace {

// Below this share of the time it is noise: two ranks on two busy cores differ by some 10 % now and
// then.
constexpr double kShare = 0.2;
// So much of the lateness its own time must explain.
constexpr double kExplained = 0.5;

double MedianOfOthers(std::span<const RankShare> ranks, int but, double RankShare::*what) {
  std::vector<double> values;
  for (int r = 0; r < int(ranks.size()); ++r) {
    if (r != but) values.push_back(ranks[r].*what);
  }
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::optional<Straggler> FindSilent(std::span<const RankShare> ranks, double seconds) {
  const auto most =
      std::max_element(ranks.begin(), ranks.end(),
                       [](const RankShare& a, const RankShare& b) { return a.silent <= b.silent; });
  if (most->silent < kShare * seconds) return {};
  return Straggler{int(most - ranks.begin()), most->silent / seconds, most->silent, Cause::kLink};
}

}  // namespace

std::string Straggler::Text() const {
  constexpr const char* kCauses[] = {"data", "compute", "link"};
  return fmt::format(
      "rank {} is a straggler: the other ranks wait {:.0f} % of each step for its {}", rank,
      100 * share, kCauses[int(cause)]);
}

std::optional<Straggler> FindStraggler(std::span<const RankShare> ranks, double seconds) {
  if (ranks.size() < 2 || !(seconds > 0)) return {};
  if (const auto silent = FindSilent(ranks, seconds)) return silent;
  int late = 0;
  for (int r = 1; r < int(ranks.size()); ++r) {
    if (ranks[r].waited < ranks[late].waited) late = r;
  }
  double least = seconds;  // that any other waited
  for (int r = 0; r < int(ranks.size()); ++r) {
    if (r != late) least = std::min(least, ranks[r].waited);
  }
  const double by = least - ranks[late].waited;
  if (!(by >= kShare * seconds)) return {};
  const auto excess = [&](double RankShare::*what) {
    return ranks[late].*what - MedianOfOthers(ranks, late, what);
  };
  const double data = excess(&RankShare::data), compute = excess(&RankShare::compute);
  if (std::max(data, 0.0) + std::max(compute, 0.0) < kExplained * by) return {};
  return Straggler{late, by / seconds, by, data > compute ? Cause::kData : Cause::kCompute};
}

std::optional<Straggler> StragglerWatch::Add(std::span<const RankShare> ranks, double seconds) {
  const auto late = FindStraggler(ranks, seconds);
  const bool same = late && last_ && late->rank == last_->rank && late->cause == last_->cause;
  stretches_ = late ? (same ? stretches_ + 1 : 1) : 0;
  seconds_ = late ? (same ? seconds_ + late->seconds : late->seconds) : 0;
  last_ = late;
  const bool often = stretches_ >= kStretches && seconds_ >= kSeconds;
  if (!often && seconds_ < kLong) return {};
  return late;
}

}  // namespace trireme
