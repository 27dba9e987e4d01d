#include "data/folds.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace trireme {
namespace {

constexpr uint64_t kFoldStream = 0x666f6c6473;  // other random numbers than the split's

}  // namespace

std::vector<int> FoldsOf(const Source& samples, int folds, uint64_t seed, Task task) {
  using Ticket = std::pair<uint64_t, int64_t>;  // random number, sample
  std::map<int32_t, std::vector<Ticket>> classes;
  for (int64_t i = 0; i < samples.size(); ++i) {
    classes[task == Task::kRegression ? 0 : samples.label(i)].emplace_back(
        Hash(seed, kFoldStream, uint64_t(i)), i);
  }
  std::vector<int> fold_of(size_t(samples.size()));
  int next = 0;  // goes on from class to class, so that no fold gets all the odd ones
  for (auto& [label, tickets] : classes) {
    std::sort(tickets.begin(), tickets.end());
    for (const auto& [random, sample] : tickets) {
      fold_of[size_t(sample)] = next;
      next = (next + 1) % folds;
    }
  }
  return fold_of;
}

void TakeFold(DataSet& data, int folds, int fold, uint64_t seed) {
  if (folds < 2) throw UsageError("data.folds must be at least 2, or 0 for none; got {}", folds);
  if (fold < 1 || fold > folds) {
    throw UsageError("data.fold must be between 1 and {} (data.folds), got {}", folds, fold);
  }
  const std::shared_ptr<const Source> whole = std::move(data.train);
  if (whole->size() < folds) {
    throw UsageError("data.folds = {}: {} has only {} samples", folds, data.name, whole->size());
  }
  std::vector<int64_t> train, test;
  const std::vector<int> fold_of = FoldsOf(*whole, folds, seed, data.task);
  for (int64_t i = 0; i < whole->size(); ++i) {
    (fold_of[size_t(i)] == fold - 1 ? test : train).push_back(i);
  }
  data.test = std::make_unique<Subset>(whole, std::move(test));
  data.train = std::make_unique<Subset>(whole, std::move(train));
}

}  // namespace trireme
