#include <fmt/core.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "graph/op.h"
#include "graph/passes/passes.h"

namespace trireme::passes {

namespace {

struct Replaced {
  int replaced = 0, removed = 0;
};

template <class Takes>
Replaced AsInEvaluation(Graph& graph, const Takes& takes) {
  std::vector<ValueId> stands_for(graph.values.size());
  std::iota(stands_for.begin(), stands_for.end(), 0);
  std::vector<Node> kept;
  Replaced done;
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) input = stands_for[input];
    const char* as = takes(node) ? node.op->evaluate_as : nullptr;
    if (as && !*as) {
      stands_for[node.outputs[0]] = node.inputs[0];
      ++done.removed;
      continue;
    }
    if (as) {
      node.op = &FindOp(as);
      node.outputs.resize(1);  // what training keeps for backward is not made
      ++done.replaced;
    }
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  return done;
}

}  // namespace

std::string ForEvaluation(Graph& graph) {
  const Replaced done = AsInEvaluation(graph, [](const Node&) { return true; });
  return fmt::format("evaluation: {} operations replaced, {} removed", done.replaced, done.removed);
}

std::string ForFrozen(Graph& graph) {
  std::string last;
  int64_t frozen = 0, all = 0;
  for (const Node& node : graph.nodes) {
    if (node.frozen) last = node.name;
    for (const int p : node.parameters) {
      const int64_t size = graph.parameters[size_t(p)].size();
      all += size;
      if (node.frozen) frozen += size;
    }
  }
  if (frozen == 0) return "";
  const Replaced done = AsInEvaluation(graph, [](const Node& node) { return node.frozen; });
  return fmt::format(
      "frozen: {} of {} parameters, up to layer {}; {} operations there compute as in evaluation, "
      "{} removed",
      frozen, all, last, done.replaced, done.removed);
}

}  // namespace trireme::passes
