#include "graph/models/losses.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace trireme {
namespace {

double Entropy(std::span<const double> shares, double smoothing) {
  double entropy = 0;
  for (const double share : shares) {
    const double target = (1 - smoothing) * share + smoothing / double(shares.size());
    if (target > 0) entropy -= target * std::log(target);
  }
  return entropy;
}

// The answer is the mean of the labels.
double HalfVariance(std::span<const double> shares, double) {
  double squares = 0;
  for (const double share : shares) squares += share * share;
  return (1 - squares) / 2;
}

// The answer is their median.
double RarerSides(std::span<const double> shares, double) {
  double sum = 0;
  for (const double share : shares) sum += std::min(share, 1 - share);
  return sum;
}

double HalfVarianceOfNumbers(std::span<const double> numbers) {
  double sum = 0, squares = 0;
  for (const double number : numbers) sum += number;
  const double mean = sum / double(numbers.size());
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  return squares / double(numbers.size()) / 2;
}

double DistanceFromMedian(std::span<const double> numbers) {
  double sum = 0;
  for (const double number : numbers) sum += std::abs(number - numbers[numbers.size() / 2]);
  return sum / double(numbers.size());
}

constexpr LossKind kLosses[] = {
    {.name = "cross-entropy", .op = "softmax_cross_entropy", .smooths = true, .guessing = Entropy},
    {.name = "squared-error",
     .op = "squared_error",
     .compares_outputs = true,
     .guessing = HalfVariance,
     .guessing_number = HalfVarianceOfNumbers},
    {.name = "absolute-error",
     .op = "absolute_error",
     .compares_outputs = true,
     .guessing = RarerSides,
     .guessing_number = DistanceFromMedian},
};

}  // namespace

std::span<const LossKind> LossKinds() { return kLosses; }

std::vector<std::string> LossNames() {
  std::vector<std::string> names;
  for (const LossKind& kind : kLosses) names.emplace_back(kind.name);
  return names;
}

const LossKind& LossFor(std::string_view name, int outputs) {
  const auto fits = [&](const LossKind& kind) { return outputs > 1 || kind.guessing_number; };
  if (name == kAutoLoss) return *std::ranges::find_if(kLosses, fits);
  const LossKind& loss = FindLoss(name);
  if (fits(loss)) return loss;
  throw UsageError(
      "model.loss = \"{}\" learns classes, but the label is a number; leave it out, or set "
      "data.task=classification",
      name);
}

const LossKind& FindLoss(std::string_view name) {
  for (const LossKind& kind : kLosses) {
    if (kind.name == name) return kind;
  }
  throw UsageError("model.loss must be one of {}, got \"{}\"", fmt::join(LossNames(), ", "), name);
}

}  // namespace trireme
