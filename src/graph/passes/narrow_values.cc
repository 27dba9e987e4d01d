#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "graph/op.h"
#include "graph/passes/passes.h"

namespace trireme::passes {
namespace {

// Values that stay float32 because of this node; more of them, the more there are.
bool Widen(const Node& node, const NarrowOperands& may, std::vector<bool>& narrow) {
  std::vector<ValueId> can, cannot;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    (may.inputs >> i & 1 ? can : cannot).push_back(node.inputs[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    (may.outputs >> i & 1 ? can : cannot).push_back(node.outputs[i]);
  }
  const auto is_narrow = [&](ValueId value) { return narrow[value]; };
  if (may.alike && !std::ranges::all_of(can, is_narrow)) {
    cannot.insert(cannot.end(), can.begin(), can.end());
  }
  const bool changes = std::ranges::any_of(cannot, is_narrow);
  for (const ValueId value : cannot) narrow[value] = false;
  return changes;
}

}  // namespace

std::string NarrowValues(Graph& graph, const Engine& engine) {
  std::vector<bool> narrow(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const ValueId value : node.outputs) {
      const ValueSpec& spec = graph.values[value];
      narrow[value] = spec.per_sample && spec.element == Element::kFloat;
    }
  }
  for (bool changes = true; changes;) {
    changes = false;
    for (const Node& node : graph.nodes) {
      const bool view = node.op->view;
      const NarrowOperands same = {.inputs = 0b1, .outputs = 0b1};
      changes |= Widen(node, view ? same : engine.NarrowOperandsOf(node), narrow);
    }
  }
  for (size_t i = 0; i < narrow.size(); ++i) {
    if (narrow[i]) graph.values[i].element = engine.narrow();
  }
  const auto count = std::ranges::count(narrow, true);
  return count ? fmt::format("narrow: {} values held in {}", count, NameOf(engine.narrow())) : "";
}

}  // namespace trireme::passes
