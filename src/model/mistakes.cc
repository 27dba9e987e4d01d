#include "model/mistakes.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "base/label.h"
#include "strategy/step/tags.h"
#include "transport/collective/all_reduce.h"

namespace trireme {
namespace {

constexpr size_t kNumbers = 5;  // of a mistake on its way; the first: whether there is one

bool IsWorse(const Mistake& a, const Mistake& b) {
  return a.certainty != b.certainty ? a.certainty > b.certainty : a.sample < b.sample;
}

}  // namespace

MistakeTally::MistakeTally(int outputs, const std::optional<TargetScale>& target)
    : outputs_(size_t(outputs)), target_(target) {
  worst_.reserve(kKept + 1);
}

Mistake MistakeTally::ClassMistake(std::span<const float> logits,
                                   std::span<const float> probabilities, int32_t label) const {
  const auto said = std::max_element(logits.begin(), logits.end()) - logits.begin();
  return {.label = double(label), .said = double(said), .certainty = probabilities[size_t(said)]};
}

Mistake MistakeTally::NumberMistake(float output, int32_t label) const {
  const double truth = target_->Original(NumberOfLabel(label)), said = target_->Original(output);
  return {.label = truth, .said = said, .certainty = std::abs(said - truth)};
}

void MistakeTally::Add(int64_t first, std::span<const float> logits,
                       std::span<const float> probabilities, std::span<const int32_t> labels) {
  TRIREME_ASSERT(logits.size() == labels.size() * outputs_ &&
                 probabilities.size() == logits.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t at = i * outputs_;
    Mistake mistake = target_ ? NumberMistake(logits[at], labels[i])
                              : ClassMistake(logits.subspan(at, outputs_),
                                             probabilities.subspan(at, outputs_), labels[i]);
    mistake.sample = first + int64_t(i);
    if (mistake.said != mistake.label && std::isfinite(mistake.certainty)) Add(mistake);
  }
}

void MistakeTally::Add(const Mistake& mistake) {
  if (worst_.size() == kKept && !IsWorse(mistake, worst_.front())) return;
  worst_.push_back(mistake);
  std::push_heap(worst_.begin(), worst_.end(), IsWorse);
  if (worst_.size() <= kKept) return;
  std::pop_heap(worst_.begin(), worst_.end(), IsWorse);
  worst_.pop_back();
}

std::vector<Mistake> MistakeTally::Result(Group* group) const {
  std::vector<Mistake> all = worst_;
  if (group && group->size() > 1) {
    // Exact: each place is not zero on one rank only, and a double holds what it is given.
    std::vector<double> places(size_t(group->size()) * kKept * kNumbers);
    for (size_t i = 0; i < worst_.size(); ++i) {
      double* const at = &places[(size_t(group->rank()) * kKept + i) * kNumbers];
      at[0] = 1;
      at[1] = double(worst_[i].sample);
      at[2] = worst_[i].label;
      at[3] = worst_[i].said;
      at[4] = worst_[i].certainty;
    }
    AllReduceSum(*group, kTagScore, places);
    all.clear();
    for (size_t i = 0; i < places.size(); i += kNumbers) {
      if (places[i] == 0) continue;
      all.push_back({int64_t(places[i + 1]), places[i + 2], places[i + 3], places[i + 4]});
    }
  }
  std::sort(all.begin(), all.end(), IsWorse);
  all.resize(std::min(all.size(), kKept));
  return all;
}

}  // namespace trireme
