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
};

std::span<const LossKind> LossKinds();
std::vector<std::string> LossNames();
const LossKind& FindLoss(std::string_view name);  // UsageError: no such loss

}  // namespace trireme
