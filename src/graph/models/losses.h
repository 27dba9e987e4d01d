#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// What ends a model (model.loss): a row of one list.
struct LossKind {
  const char* name;
  const char* op;
  bool smooths = false;  // labels may be smoothed (model.smoothing)
  // Compares outputs with one-hot labels: an mlp's sigmoid or tanh follows its output layer, too.
  bool compares_outputs = false;
  // The least loss that one answer for all samples can have, by the share of each class.
  double (*guessing)(std::span<const double> shares, double smoothing);
  // The same of numbers, in ascending order; null: learns no numbers.
  double (*guessing_number)(std::span<const double> numbers) = nullptr;
};

std::span<const LossKind> LossKinds();
std::vector<std::string> LossNames();
const LossKind& FindLoss(std::string_view name);  // UsageError: no such loss

// The one that model.loss means for so many outputs; one output is a number. "auto" is the first of
// the list that fits. UsageError where the named one does not.
constexpr char kAutoLoss[] = "auto";
const LossKind& LossFor(std::string_view name, int outputs);

}  // namespace trireme
