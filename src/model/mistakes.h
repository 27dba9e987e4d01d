#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/normalizer.h"
#include "transport/group.h"

namespace trireme {

// A sample of which a network said something else than its label.
struct Mistake {
  int64_t sample = 0;    // of those that were evaluated
  double label = 0;      // a class, or a number
  double said = 0;       // likewise
  double certainty = 0;  // the probability of what was said; of numbers how far off it is
};

// Finds the samples that a network is most certain, or furthest, off. However the samples are
// shared among ranks, they are the same: of equal ones the first count.
class MistakeTally {
 public:
  static constexpr size_t kKept = 16;

  // `target`: the scale of numbers that are predicted; none: classes are.
  MistakeTally(int outputs, const std::optional<TargetScale>& target);

  // Samples from `first` on, their outputs one after another.
  void Add(int64_t first, std::span<const float> logits, std::span<const float> probabilities,
           std::span<const int32_t> labels);
  void Clear() { worst_.clear(); }

  // Of all members' samples, the worst first, on every member. All call it; without a group, one
  // does.
  std::vector<Mistake> Result(Group* group) const;

 private:
  Mistake ClassMistake(std::span<const float> logits, std::span<const float> probabilities,
                       int32_t label) const;
  Mistake NumberMistake(float output, int32_t label) const;
  void Add(const Mistake& mistake);

  const size_t outputs_;
  const std::optional<TargetScale> target_;
  std::vector<Mistake> worst_;  // a heap: the one to go first stands in front
};

}  // namespace trireme
