#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// What follows a hidden layer (model.activation): a row of one list. Its name is the operation's.
struct ActivationKind {
  const char* name;
  // Where a loss compares outputs with one-hot labels it follows an mlp's output layer, too.
  bool follows_output = false;
};

std::span<const ActivationKind> ActivationKinds();
std::vector<std::string> ActivationNames();
const ActivationKind& FindActivation(std::string_view name);  // UsageError: no such activation

}  // namespace trireme
