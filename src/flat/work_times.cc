#include "flat/work_times.h"

#include <algorithm>

namespace trireme {

void WorkTimes::AddLate(const Event& began, const Event& ended, double stands_for,
                        const SpanLabel& label) {
  Collect();
  open_.push_back({began, ended, stands_for, label});
}

void WorkTimes::Collect() const {
  const auto fired = [](const Open& open) {
    return open.began.HasFired() && open.ended.HasFired();
  };
  const auto first = std::ranges::find_if_not(open_, fired);
  for (auto open = open_.begin(); open != first; ++open) {
    Count(open->began.FiredAt(), open->ended.FiredAt(), open->stands_for, open->label);
  }
  open_.erase(open_.begin(), first);
}

}  // namespace trireme
