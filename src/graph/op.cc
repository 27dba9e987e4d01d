#include "graph/op.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {
namespace {

bool DependsOnParameters(const Graph& graph, ValueId value) {
  for (const Node& node : graph.nodes) {
    if (std::ranges::find(node.outputs, value) == node.outputs.end()) continue;
    if (node.frozen) return false;
    return !node.parameters.empty() || std::ranges::any_of(node.inputs, [&](ValueId input) {
      return DependsOnParameters(graph, input);
    });
  }
  return value != 0;  // the batch; who builds a part of a graph may leave other values open
}

std::string Join(std::span<const char* const> words, std::string_view between) {
  std::string text;
  for (const char* word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text.empty() ? "-" : text;
}

}  // namespace

bool GradientBuilder::Needs(int input) const {
  return DependsOnParameters(graph_, forward_.inputs[input]);
}

std::vector<ValueId> GradientBuilder::Add(std::string_view op, std::vector<ValueId> inputs,
                                          const std::vector<ValueSpec>& outputs, int part) {
  return Add(FindOp(op), std::move(inputs), outputs, part);
}

std::vector<ValueId> GradientBuilder::Add(const OpDef& op, std::vector<ValueId> inputs,
                                          const std::vector<ValueSpec>& outputs, int part) {
  TRIREME_ASSERT(inputs.size() == op.inputs.size() && outputs.size() == op.outputs.size());
  TRIREME_ASSERT(op.parts.size() == 0);  // fusion comes later
  Node node = part == kWhole ? forward_ : forward_.parts[part];
  node.op = &op;
  node.inputs = std::move(inputs);
  node.outputs.clear();
  node.backward = true;
  for (const ValueSpec& spec : outputs) {
    node.outputs.push_back(ValueId(graph_.values.size()));
    graph_.values.push_back(spec);
  }
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

const OpDef& FindOp(std::string_view name) {
  for (const OpDef* op : AllOps()) {
    if (op->name == name) return *op;
  }
  AssertFailed("graph/ops/all_ops.cc lists every operation", __FILE__, __LINE__);
}

Cost CountWork(const Graph& graph, const Node& node) {
  Cost cost;
  if (node.op->cost) cost = node.op->cost(graph, node);
  if (node.op->parts.size() > 0) {
    for (const Node& part : node.parts) cost.multiply_adds += CountWork(graph, part).multiply_adds;
  }
  if (node.op->view) return cost;
  for (ValueId input : node.inputs) cost.bytes_read += double(graph.values[input].bytes(1));
  for (ValueId output : node.outputs) cost.bytes_written += double(graph.values[output].bytes(1));
  return cost;
}

std::string OperationsPage() {
  std::string page =
      "# Operations\n\n"
      "Generated from the descriptions in `src/graph/ops`; a test compares. Operations that\n"
      "end in `_grad`, `_grad_weights` or `_grad_input` are added by the gradient rules, fused\n"
      "ones by the compiler if the engine has them. Shapes are those of one sample: height x\n"
      "width x channels.\n\n"
      "| operation | inputs | outputs | what it computes |\n|---|---|---|---|\n";
  for (const OpDef* op : AllOps()) {
    page += fmt::format("| `{}` | {} | {} | {} |\n", op->name, Join(op->inputs, ", "),
                        Join(op->outputs, ", "), op->summary);
  }
  return page;
}

}  // namespace trireme
