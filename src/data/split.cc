#include "data/split.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "data/order.h"

namespace trireme {
namespace {

constexpr uint64_t kSplitStream = 0x73706c6974;  // other random numbers than the epochs' order
constexpr uint64_t kValidationStream = 0x76616c6964;
constexpr uint64_t kLimitStream = 0x6c696d6974;

// The samples at some positions of a keyed permutation, ascending.
std::vector<int64_t> Choose(uint64_t key, int64_t size, int64_t begin, int64_t end) {
  std::vector<int64_t> chosen(static_cast<size_t>(end - begin));
  Order(key, size, true).Fill(0, begin, chosen);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// Some samples of a part, at random, and those that are left.
struct Halves {
  std::unique_ptr<Source> held_out, rest;
};

Halves HoldOut(std::unique_ptr<Source> part, double fraction, uint64_t key) {
  const std::shared_ptr<const Source> whole = std::move(part);
  const auto wanted =
      static_cast<int64_t>(std::llround(fraction * static_cast<double>(whole->size())));
  const int64_t num_held = std::clamp<int64_t>(wanted, 1, whole->size() - 1);
  return {std::make_unique<Subset>(whole, Choose(key, whole->size(), 0, num_held)),
          std::make_unique<Subset>(whole, Choose(key, whole->size(), num_held, whole->size()))};
}

}  // namespace

void SplitTest(DataSet& data, double fraction, uint64_t seed) {
  if (data.train->size() < 2) {
    throw Error("{}: {} sample, too few to hold some out for testing", data.name,
                data.train->size());
  }
  Halves halves = HoldOut(std::move(data.train), fraction, Hash(seed, kSplitStream));
  data.test = std::move(halves.held_out);
  data.train = std::move(halves.rest);
}

void SplitValidation(DataSet& data, double fraction, uint64_t seed) {
  if (fraction == 0) return;
  if (data.validation) {
    throw UsageError("data.validation_fraction = {}, but '{}' has a validation part of its own",
                     fraction, data.name);
  }
  if (data.train->size() < 2) {
    throw Error("{}: {} training sample, too few to hold some out for validation", data.name,
                data.train->size());
  }
  Halves halves = HoldOut(std::move(data.train), fraction, Hash(seed, kValidationStream));
  data.validation = std::move(halves.held_out);
  data.train = std::move(halves.rest);
}

void LimitTraining(DataSet& data, int64_t limit, uint64_t seed) {
  if (limit == 0 || limit >= data.train->size()) return;
  const std::shared_ptr<const Source> whole = std::move(data.train);
  data.train =
      std::make_unique<Subset>(whole, Choose(Hash(seed, kLimitStream), whole->size(), 0, limit));
}

}  // namespace trireme
