#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace trireme {

// How well the scores of one class tell its samples (positives) from all others: the receiver
// operating characteristic, and the area under it. The area is the share of pairs of a positive
// and a negative in which the positive has the higher score; equal scores count one half, which is
// the trapezoid rule.
struct Roc {
  int64_t positives = 0, negatives = 0;
  std::optional<double> auc;  // nothing where there are no positives or no negatives
  double auc_error = 0;       // it is off by this at most; 0: exact
  // The curve from (0, 0) to (1, 1), perhaps thinned; empty without an area.
  std::vector<double> false_positive_rate, true_positive_rate;
};

// All classes, each against the rest.
struct RocCurves {
  int64_t bins = 0;  // of the histogram of scores that the curves are from; 0: exact
  std::vector<Roc> classes;

  std::optional<double> MacroAuc() const;  // mean over the classes that have one
  double AucError() const;                 // of any class, and of their mean, at most
};

// Points of a curve that are kept where there are so many classes: 200 of each up to 100 classes,
// fewer of more, never less than 20.
size_t RocPoints(size_t classes);

// Walks down the scores of one class. All counts are integers, so the area does not depend on who
// counted what.
class RocBuilder {
 public:
  // Samples of one score, or of a bin of scores; the highest first.
  void Add(int64_t positives, int64_t negatives);

  // `binned`: samples that were added together may have had different scores. The order of these
  // pairs is unknown; one half of each is right up to the other half, which is the error.
  Roc Finish(size_t most_points, bool binned) const;

 private:
  using Corner = std::pair<int64_t, int64_t>;  // negatives, positives up to here

  std::vector<Corner> Thinned(size_t most_points) const;

  std::vector<Corner> corners_{{0, 0}};  // where the curve turns, and its last point
  int64_t twice_area_ = 0;               // in pairs
  int64_t pairs_together_ = 0;           // of one score
};

}  // namespace trireme
