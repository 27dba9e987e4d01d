#include <fmt/core.h>

#include <cstring>
#include <numeric>

#include "graph/op.h"
#include "graph/passes/passes.h"

namespace trireme::passes {

std::string ForEvaluation(Graph& graph) {
  std::vector<ValueId> stands_for(graph.values.size());
  std::iota(stands_for.begin(), stands_for.end(), 0);
  std::vector<Node> kept;
  int removed = 0, replaced = 0;
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) input = stands_for[input];
    const char* as = node.op->evaluate_as;
    if (as && !*as) {
      stands_for[node.outputs[0]] = node.inputs[0];
      ++removed;
      continue;
    }
    if (as) {
      node.op = &FindOp(as);
      node.outputs.resize(1);  // what training keeps for backward is not made
      ++replaced;
    }
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  return fmt::format("evaluation: {} operations replaced, {} removed", replaced, removed);
}

}  // namespace trireme::passes
