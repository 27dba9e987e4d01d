#include "graph/models/activations.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace trireme {
namespace {

constexpr ActivationKind kActivations[] = {
    {.name = "relu"},  // zeros of an output layer would not learn
    {.name = "sigmoid", .follows_output = true},
    {.name = "tanh", .follows_output = true},
    {.name = "gelu"},
};

}  // namespace

std::span<const ActivationKind> ActivationKinds() { return kActivations; }

std::vector<std::string> ActivationNames() {
  std::vector<std::string> names;
  for (const ActivationKind& kind : kActivations) names.emplace_back(kind.name);
  return names;
}

const ActivationKind& FindActivation(std::string_view name) {
  for (const ActivationKind& kind : kActivations) {
    if (kind.name == name) return kind;
  }
  throw UsageError("model.activation must be one of {}, got \"{}\"",
                   fmt::join(ActivationNames(), ", "), name);
}

}  // namespace trireme
