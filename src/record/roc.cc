#include "record/roc.h"

#include <algorithm>
#include <tuple>

namespace trireme {

std::optional<double> RocCurves::MacroAuc() const {
  double sum = 0;
  int64_t count = 0;
  for (const Roc& roc : classes) {
    if (!roc.auc) continue;
    sum += *roc.auc;
    ++count;
  }
  if (count == 0) return {};
  return sum / double(count);
}

double RocCurves::AucError() const {
  double most = 0;
  for (const Roc& roc : classes) most = std::max(most, roc.auc_error);
  return most;
}

size_t RocPoints(size_t classes) {
  return std::clamp<size_t>(20'000 / std::max<size_t>(classes, 1), 20, 200);
}

void RocBuilder::Add(int64_t positives, int64_t negatives) {
  if (positives == 0 && negatives == 0) return;
  const auto [x, y] = corners_.back();
  twice_area_ += negatives * (2 * y + positives);
  pairs_together_ += positives * negatives;
  if (corners_.size() > 1) {  // straight on: the last point is no corner
    const auto [x_before, y_before] = corners_[corners_.size() - 2];
    if ((x - x_before) * positives == (y - y_before) * negatives) corners_.pop_back();
  }
  corners_.emplace_back(x + negatives, y + positives);
}

// The length along the curve, in rates, is 2: of each of equal stretches the first corner stays.
std::vector<RocBuilder::Corner> RocBuilder::Thinned(size_t most_points) const {
  if (corners_.size() <= most_points) return corners_;
  const auto [negatives, positives] = corners_.back();
  const double stretches = double(most_points - 2);
  std::vector<Corner> kept{corners_.front()};
  int64_t last = -1;
  for (size_t i = 1; i + 1 < corners_.size(); ++i) {
    const double along = double(corners_[i].first) / double(negatives) +
                         double(corners_[i].second) / double(positives);
    const auto stretch = std::min(int64_t(along / 2 * stretches), int64_t(stretches) - 1);
    if (stretch == last) continue;
    last = stretch;
    kept.push_back(corners_[i]);
  }
  kept.push_back(corners_.back());
  return kept;
}

Roc RocBuilder::Finish(size_t most_points, bool binned) const {
  Roc roc;
  std::tie(roc.negatives, roc.positives) = corners_.back();
  if (roc.negatives == 0 || roc.positives == 0) return roc;
  const double pairs = double(roc.negatives) * double(roc.positives);
  roc.auc = double(twice_area_) / (2 * pairs);
  if (binned) roc.auc_error = double(pairs_together_) / (2 * pairs);
  for (const auto& [x, y] : Thinned(most_points)) {
    roc.false_positive_rate.push_back(double(x) / double(roc.negatives));
    roc.true_positive_rate.push_back(double(y) / double(roc.positives));
  }
  return roc;
}

}  // namespace trireme
