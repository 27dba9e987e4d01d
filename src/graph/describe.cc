#include <fmt/core.h>

#include <map>

#include "graph/op.h"
#include "graph/program.h"

namespace trireme {

namespace {

// With how it is computed, where there was a choice.
std::string Operation(const Node& node) {
  return node.how.empty() ? node.op->name : fmt::format("{} {}", node.op->name, node.how);
}

}  // namespace

std::string DescribeLayers(const Graph& graph) {
  const auto line = [](std::string_view layer, std::string_view operation, std::string_view output,
                       std::string_view parameters) {
    return fmt::format("{:<32} {:<24} {:>14} {:>12}\n", layer, operation, output, parameters);
  };
  std::string text = line("layer", "operation", "output", "parameters");
  text += line("", "input", ToText(graph.input()), "");
  for (const Node& node : graph.nodes) {
    int64_t parameters = 0;
    for (const int p : node.parameters) parameters += graph.parameters[p].size();
    const std::string count = parameters ? fmt::format("{}", parameters) : "";
    text += line(node.name, node.op->name, ToText(graph.values[node.outputs[0]].shape),
                 node.frozen && parameters ? count + " frozen" : count);
  }
  return text + "\n";
}

std::string Describe(const Program& program) {
  const Graph& graph = program.graph;
  std::string text;
  auto line = [&](const std::string& s) { text += s + "\n"; };

  line(fmt::format("{:<4} {:<32} {:<28} {:>14} {:>14} {:>12}", "#", "operation", "layer", "output",
                   "multiply-adds", "parameters"));
  double total = 0;
  int number = 0;
  for (const Node& node : graph.nodes) {
    if (node.op->view) continue;
    const Cost cost = CountWork(graph, node);
    total += cost.multiply_adds;
    int64_t parameters = 0;
    if (!node.backward) {
      for (const int p : node.parameters) parameters += graph.parameters[p].size();
    }
    line(fmt::format("{:<4} {:<32} {:<28} {:>14} {:>14.0f} {:>12}", number++, Operation(node),
                     node.name,
                     node.outputs.empty() ? "-" : ToText(graph.values[node.outputs[0]].shape),
                     cost.multiply_adds, parameters ? fmt::format("{}", parameters) : ""));
  }
  line("");
  for (const std::string& decision : program.decisions) line(decision);

  int64_t parameters = 0;
  for (const ParameterSpec& p : graph.parameters) parameters += p.size();
  line(fmt::format("parameters: {} in {} tensors; multiply-adds per step: {:.4g} M per sample",
                   parameters, graph.parameters.size(), total * 1e-6));
  line(fmt::format("activations: {:.2f} MB for a shard of {} samples",
                   program.activation_bytes * 1e-6, program.capacity));
  line(fmt::format("state: {:.2f} MB; summand: {:.2f} MB in {} buckets",
                   program.layout.state * 4e-6, program.layout.summand * 4e-6,
                   program.buckets.size()));
  return text;
}

}  // namespace trireme
