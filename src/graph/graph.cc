#include "graph/graph.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/error.h"
#include "graph/op.h"
#include "graph/parameter_name.h"

namespace trireme {

std::string ToText(const Shape& shape) {
  if (shape.height == 1 && shape.width == 1) return fmt::format("{}", shape.channels);
  return fmt::format("{}x{}x{}", shape.height, shape.width, shape.channels);
}

int64_t ParameterSpec::size() const {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

const Node& Graph::loss() const {
  // The last forward node that has a result: what counts predictions for the report has none.
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (!node->backward && !node->outputs.empty()) return *node;
  }
  AssertFailed("a graph without nodes has no loss", __FILE__, __LINE__);
}

namespace {

const Node* Producer(const Graph& graph, ValueId value) {
  for (const Node& node : graph.nodes) {
    if (std::ranges::find(node.outputs, value) != node.outputs.end()) return &node;
  }
  return nullptr;
}

// The shape that a flatten before `value` has flattened. Operations without parameters that keep
// the shape (activations, dropout) may stand between.
Shape ShapeBeforeFlatten(const Graph& graph, ValueId value) {
  const Shape flat = graph.values[value].shape;
  while (const Node* node = Producer(graph, value)) {
    const Shape before = graph.values[node->inputs[0]].shape;
    if (node->op->view) return before;
    if (!node->parameters.empty() || before != flat) break;
    value = node->inputs[0];
  }
  return flat;
}

void AddParameters(std::vector<ParameterSpec>& all, const std::vector<ParameterSpec>& own,
                   std::string_view layer, std::vector<int>& indices) {
  for (const ParameterSpec& spec : own) {
    indices.push_back(int(all.size()));
    all.push_back(spec);
    all.back().name = FullName(layer, spec.name);
  }
}

}  // namespace

std::string FullName(std::string_view layer, const std::string& name) {
  if (layer.empty()) return name;
  if (name.empty()) return std::string(layer);
  return fmt::format("{}{}{}", layer, layer.ends_with('_') ? "" : ".", name);
}

Builder::Builder(Shape input) {
  if (input.height < 1 || input.width < 1 || input.channels < 1) {
    throw Error("a model's input must have at least one value, got {}x{}x{}", input.height,
                input.width, input.channels);
  }
  graph_.values.push_back({.shape = input});
}

ValueId Builder::Add(std::string_view op, std::vector<ValueId> inputs, const Attributes& attributes,
                     std::string_view name) {
  const OpDef& def = FindOp(op);
  TRIREME_ASSERT(def.infer && inputs.size() == def.inputs.size());
  std::vector<ValueSpec> specs;
  for (ValueId input : inputs) specs.push_back(graph_.values.at(input));

  Signature signature;
  try {
    signature = def.infer(specs, attributes);
  } catch (Error& e) {
    e.Add("operation {}, layer \"{}\"", op, name);
    throw;
  }
  for (ParameterSpec& spec : signature.parameters) {
    if (spec.form == FileForm::kDense && !attributes.tokens)
      spec.flattened = ShapeBeforeFlatten(graph_, inputs[0]);
  }

  Node node{.op = &def, .name = std::string(name), .attributes = attributes, .inputs = inputs};
  if (op == "dropout" || op == "stochastic_depth") node.attributes.layer = num_dropouts_++;
  AddParameters(graph_.parameters, signature.parameters, name, node.parameters);
  AddParameters(graph_.statistics, signature.statistics, name, node.statistics);
  for (const ValueSpec& spec : signature.outputs) {
    node.outputs.push_back(ValueId(graph_.values.size()));
    graph_.values.push_back(spec);
  }
  graph_.nodes.push_back(std::move(node));
  const auto& outputs = graph_.nodes.back().outputs;
  return outputs.empty() ? -1 : outputs[0];
}

Graph Builder::Finish(std::string_view loss, ValueId logits, float smoothing) && {
  Add(loss, {logits}, {.smoothing = smoothing}, "loss");
  return std::move(graph_);
}

}  // namespace trireme
