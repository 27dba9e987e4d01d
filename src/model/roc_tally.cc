#include "model/roc_tally.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "base/error.h"
#include "strategy/step/tags.h"
#include "transport/collective/all_reduce.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

constexpr int64_t kMostCounts = int64_t{1} << 23;   // of a rank's histograms
constexpr int64_t kBlockValues = int64_t{1} << 20;  // that travel at once
constexpr int kMantissa = 23;                       // bits of a float's
constexpr int kMostFineness = 12;

// In which floats are ordered as integers; what is not a number comes first, -0 is 0.
uint32_t OrderOf(float score) {
  if (std::isnan(score)) return 0;
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Steps on a scale of octaves (2^23 to one) from 0 to `distance`, which is cut to 2^-24 .. 2^8.
int64_t StepsTo(float distance) {
  const float far = std::min(std::abs(distance), 0x1.fffffep7f);
  if (far < 0x1p-24f) return 0;
  const int64_t steps =
      int64_t(std::bit_cast<uint32_t>(far)) - int64_t(std::bit_cast<uint32_t>(0x1p-24f)) + 1;
  return distance < 0 ? -steps : steps;
}

template <class T>
std::vector<T> GatherAll(Group* group, std::vector<T> own) {
  if (!group || group->size() == 1) return own;
  std::vector<T> all;
  const auto parts = GatherBytes(*group, kTagScore, 0, std::as_bytes(std::span<const T>(own)));
  for (const auto& part : parts) {
    const size_t before = all.size();
    all.resize(before + part.size() / sizeof(T));
    if (!part.empty()) std::memcpy(all.data() + before, part.data(), part.size());
  }
  return all;
}

// `work` is memory to reuse.
Roc ExactCurve(std::span<const float> scores, std::span<const int32_t> labels, int32_t wanted,
               size_t points, std::vector<uint64_t>& work) {
  work.clear();
  for (size_t i = 0; i < scores.size(); ++i) {
    work.push_back(uint64_t(OrderOf(scores[i])) << 1 | uint64_t(labels[i] == wanted));
  }
  std::sort(work.begin(), work.end(), std::greater<>());
  RocBuilder builder;
  for (size_t i = 0; i < work.size();) {
    const uint64_t score = work[i] >> 1;
    int64_t counts[2] = {};
    for (; i < work.size() && work[i] >> 1 == score; ++i) ++counts[work[i] & 1];
    builder.Add(counts[1], counts[0]);
  }
  return builder.Finish(points, false);
}

}  // namespace

RocTally::RocTally(int classes, int64_t samples, int64_t exact_scores)
    : classes_(classes), samples_(samples), exact_(samples <= exact_scores / classes) {
  if (exact_) return;
  while (fineness_ < kMostFineness && 2 * BinsOf(fineness_ + 1) * classes <= kMostCounts) {
    ++fineness_;
  }
  num_bins_ = BinsOf(fineness_);
  Clear();
}

void RocTally::Clear() {
  scores_.clear();
  labels_.clear();
  counts_.assign(size_t(2 * num_bins_ * classes_), 0);
}

// Scores above 1/2 are measured from 1. Octaves below 0: 32; from 0 to 1/2: 23; the same above.
int64_t RocTally::BinOf(float score, int fineness) {
  constexpr int64_t kOctave = int64_t{1} << kMantissa;
  constexpr int64_t kMiddle = kOctaves / 2 * kOctave;
  const int64_t below = 32 * kOctave;
  int64_t at = 0;
  if (!std::isnan(score)) {
    const bool low = score <= 0.5f;
    const int64_t from_edge =
        std::clamp<int64_t>(below + StepsTo(low ? score : 1 - score), 0, kMiddle);
    at = low ? from_edge : 2 * kMiddle - from_edge;
  }
  return at >> (kMantissa - fineness);
}

void RocTally::Count(std::span<const float> scores, int32_t label) {
  for (int c = 0; c < classes_; ++c) {
    ++counts_[size_t(2 * (c * num_bins_ + BinOf(scores[c], fineness_)) + (c == label))];
  }
}

void RocTally::Add(std::span<const float> scores, std::span<const int32_t> labels) {
  TRIREME_ASSERT(scores.size() == labels.size() * size_t(classes_));
  if (exact_) {
    scores_.insert(scores_.end(), scores.begin(), scores.end());
    labels_.insert(labels_.end(), labels.begin(), labels.end());
    return;
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    Count(scores.subspan(i * size_t(classes_), size_t(classes_)), labels[i]);
  }
}

void RocTally::Add(const RocTally& other) {
  TRIREME_ASSERT(classes_ == other.classes_ && (other.exact_ || fineness_ == other.fineness_));
  if (other.exact_) return Add(other.scores_, other.labels_);
  TRIREME_ASSERT(!exact_);
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

RocCurves RocTally::Result(Group* group) const {
  return {bins(), exact_ ? ExactCurves(group) : BinnedCurves(group)};
}

std::vector<Roc> RocTally::ExactCurves(Group* group) const {
  const bool root = !group || group->rank() == 0;
  const size_t own = labels_.size(), classes = size_t(classes_);
  const size_t at_once = size_t(std::clamp<int64_t>(kBlockValues / std::max<int64_t>(samples_, 1),
                                                    1, std::max<int64_t>(classes_, 1)));
  const std::vector<int32_t> labels = GatherAll(group, labels_);
  std::vector<Roc> curves;
  std::vector<uint64_t> work;
  for (size_t begin = 0; begin < classes; begin += at_once) {
    const size_t count = std::min(at_once, classes - begin);
    std::vector<float> block(own * count);  // a sample's scores stay together
    for (size_t i = 0; i < own; ++i) {
      std::copy_n(&scores_[i * classes + begin], count, &block[i * count]);
    }
    const std::vector<float> all = GatherAll(group, std::move(block));
    if (!root) continue;
    if (all.size() != labels.size() * count) {
      throw Error("gathered {} scores for {} samples and {} classes", all.size(), labels.size(),
                  count);
    }
    std::vector<float> column(labels.size());
    for (size_t c = 0; c < count; ++c) {
      for (size_t i = 0; i < column.size(); ++i) column[i] = all[i * count + c];
      curves.push_back(ExactCurve(column, labels, int32_t(begin + c), RocPoints(classes), work));
    }
  }
  return curves;
}

std::vector<Roc> RocTally::BinnedCurves(Group* group) const {
  const int64_t at_once = std::clamp<int64_t>(kBlockValues / (2 * num_bins_), 1, classes_);
  std::vector<Roc> curves;
  for (int64_t begin = 0; begin < classes_; begin += at_once) {
    const int64_t count = std::min(at_once, classes_ - begin);
    const auto first = counts_.begin() + 2 * num_bins_ * begin;
    // Counts are added as doubles without loss: they are integers far below 2^53.
    std::vector<double> block(first, first + 2 * num_bins_ * count);
    if (group) AllReduceSum(*group, kTagScore, block);
    if (group && group->rank() != 0) continue;
    for (int64_t c = 0; c < count; ++c) {
      const double* bins = &block[size_t(2 * num_bins_ * c)];
      RocBuilder builder;
      for (int64_t b = num_bins_ - 1; b >= 0; --b) {
        builder.Add(int64_t(bins[2 * b + 1]), int64_t(bins[2 * b]));
      }
      curves.push_back(builder.Finish(RocPoints(size_t(classes_)), true));
    }
  }
  return curves;
}

}  // namespace trireme
