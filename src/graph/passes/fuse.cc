#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "graph/op.h"
#include "graph/passes/passes.h"

namespace trireme::passes {
namespace {

// The one node that reads `value`, if it is of operation `op`.
std::optional<size_t> OnlyReader(const Graph& graph, ValueId value, std::string_view op) {
  std::optional<size_t> found;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& inputs = graph.nodes[i].inputs;
    const auto times = std::count(inputs.begin(), inputs.end(), value);
    if (times == 0) continue;
    if (times > 1 || found || graph.nodes[i].op->name != op) return {};
    found = i;
  }
  return found;
}

// The fused node stands where `second` stood: all inputs are there by then.
Node Join(const Node& first, const Node& second, const OpDef& fused) {
  Node node = first;
  node.op = &fused;
  for (const ValueId input : second.inputs) {
    if (input != first.outputs[0]) node.inputs.push_back(input);
  }
  node.outputs = second.outputs;
  node.outputs.insert(node.outputs.end(), first.outputs.begin() + 1, first.outputs.end());
  return node;
}

bool FuseOne(Graph& graph, const Fusion& fusion) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& first = graph.nodes[i];
    if (first.op->name != std::string_view(fusion.first) || first.outputs.empty()) continue;
    const auto reader = OnlyReader(graph, first.outputs[0], fusion.second);
    if (!reader || graph.nodes[*reader].backward != first.backward) continue;
    graph.nodes[*reader] = Join(first, graph.nodes[*reader], FindOp(fusion.fused));
    graph.nodes.erase(graph.nodes.begin() + i);
    return true;
  }
  return false;
}

// What became one, as text; empty: nothing.
template <class Takes>
std::string FuseAll(Graph& graph, const Engine& engine, const Takes& takes) {
  std::map<std::string, int> counts;
  for (const Fusion& fusion : engine.fusions()) {
    while (takes(fusion) && FuseOne(graph, fusion)) ++counts[fusion.fused];
  }
  std::string text;
  for (const auto& [name, count] : counts) text += fmt::format(" {} x {}", count, name);
  return text;
}

}  // namespace

std::string FuseWithGradient(Graph& graph, const Engine& engine) {
  const std::string made = FuseAll(
      graph, engine, [](const Fusion& fusion) { return FindOp(fusion.fused).gradient != nullptr; });
  return made.empty() ? "" : "fusion before backward:" + made;
}

std::string Fuse(Graph& graph, const Engine& engine) {
  const std::string made = FuseAll(graph, engine, [](const Fusion&) { return true; });
  return "fusion:" + (made.empty() ? " none" : made);
}

void CheckKernels(const Graph& graph, const Engine& engine) {
  for (const Node& node : graph.nodes) {
    if (node.op->view || engine.Computes(node.op->name)) continue;
    throw Error("engine {}: no kernel for operation {} (layer {})", engine.name(), node.op->name,
                node.name);
  }
}

}  // namespace trireme::passes
