#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "record/roc.h"
#include "transport/group.h"

namespace trireme {

// The scores that a network gives its test samples, for the ROC curve of each class against the
// rest. However the samples are shared among ranks, the curves and areas have the same bits.
//
// Up to kExactScores scores (samples x classes, of all ranks together) are kept as they are, 4
// bytes each on the rank that saw them, and gathered some classes at a time: the areas are exact.
// Beyond, a rank counts them in a histogram, at most 64 MiB whatever the number of samples, and
// each area comes with what it can be off by (Roc::auc_error).
//
// The histogram's bins are fixed: as scores are mostly close to 0 or to 1, bins get finer towards
// both, by octaves (distance 2^-1 to 2^-24), and there are bins beyond, for outputs that are no
// probabilities (up to a distance of 2^8).
class RocTally {
 public:
  static constexpr int64_t kExactScores = int64_t{1} << 24;

  // `samples` of all ranks together: they decide how scores are kept.
  RocTally(int classes, int64_t samples, int64_t exact_scores = kExactScores);

  // Samples, their scores one after another; one that is not a number stands below all others.
  void Add(std::span<const float> scores, std::span<const int32_t> labels);
  void Add(const RocTally& other);  // of as many classes, and of fewer samples
  void Clear();

  // Of all members' samples, at rank 0; elsewhere nothing. All call it; without a group, one does.
  RocCurves Result(Group* group) const;

  int64_t bins() const { return exact_ ? 0 : num_bins_; }

  // The bin of a score where octaves have 2^`fineness` bins: higher scores have no lower one.
  static int64_t BinOf(float score, int fineness);
  static int64_t BinsOf(int fineness) { return (kOctaves << fineness) + 1; }

 private:
  static constexpr int64_t kOctaves = 110;

  void Count(std::span<const float> scores, int32_t label);
  std::vector<Roc> ExactCurves(Group* group) const;
  std::vector<Roc> BinnedCurves(Group* group) const;

  int classes_;
  int64_t samples_;
  bool exact_;
  int fineness_ = 0;
  int64_t num_bins_ = 0;
  std::vector<float> scores_;    // exact: of the samples seen here
  std::vector<int32_t> labels_;  // exact
  std::vector<int64_t> counts_;  // else: [class][bin][negative, positive]
};

}  // namespace trireme
