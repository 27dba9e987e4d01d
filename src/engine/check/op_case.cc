#include "engine/check/op_case.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "engine/check/tries.h"
#include "graph/layout.h"

namespace trireme::check {
namespace {

constexpr size_t kAlignment = 64, kGap = 64;  // bytes

// Of an operation, or of a fused one: the second's outputs, then the first's beyond its first.
Signature SignatureOf(const OpDef& op, std::span<const ValueSpec> inputs, const Attributes& a) {
  return (op.infer ? op : FindOp(*op.parts.begin())).infer(inputs, a);
}

Graph MakeGraph(const OpDef& op, const Setting& setting) {
  Graph graph;
  graph.values.push_back({});
  Node node{.op = &op, .name = "tried", .attributes = setting.attributes};
  std::vector<ValueSpec> specs;
  for (const Shape& shape : setting.inputs) specs.push_back({.shape = shape});
  const Signature signature = SignatureOf(op, specs, setting.attributes);
  while (specs.size() < op.inputs.size()) specs.push_back(signature.outputs[0]);  // residuals
  auto append = [&](const ValueSpec& spec, std::vector<ValueId>& to) {
    to.push_back(ValueId(graph.values.size()));
    graph.values.push_back(spec);
  };
  for (const ValueSpec& spec : specs) append(spec, node.inputs);
  for (const ValueSpec& spec : signature.outputs) append(spec, node.outputs);
  for (const ParameterSpec& spec : signature.parameters) {
    node.parameters.push_back(int(graph.parameters.size()));
    graph.parameters.push_back(spec);
  }
  for (const ParameterSpec& spec : signature.statistics) {
    node.statistics.push_back(int(graph.statistics.size()));
    graph.statistics.push_back(spec);
  }
  graph.nodes.push_back(std::move(node));
  return graph;
}

// Adds what the gradient rule adds, with an open value for the gradient of output 0.
void AddGradient(Graph& graph) {
  const Node forward = graph.nodes[0];
  if (!forward.op->gradient) return;
  graph.values.push_back(graph.values[forward.outputs[0]]);
  GradientBuilder build(graph, forward, ValueId(graph.values.size() - 1));
  forward.op->gradient(build);
}

std::string Explain(const OpDef& op, const OpDef& forward, const Setting& s, const OpCase& c) {
  std::string inputs;
  for (const Shape& shape : s.inputs) inputs += (inputs.empty() ? "" : ", ") + ToText(shape);
  const Attributes& a = s.attributes;
  return fmt::format(
      "{} of {}({}): channels {}, kernel {}, stride {}, padding {}, bias {}, affine {}, smoothing "
      "{}; {} of {} samples{}",
      op.name, forward.name, inputs, a.channels, a.kernel, a.stride, a.padding, a.bias, a.affine,
      a.smoothing, c.count, c.capacity,
      c.in_place < 0 ? "" : fmt::format(", in place on input {}", c.in_place));
}

}  // namespace

std::vector<OpCase> CasesFor(const OpDef& op) {
  std::vector<OpCase> cases;
  if (op.view) return cases;                                             // never computed
  const std::pair<int, int> sizes[] = {{1, 1}, {3, 3}, {2, 5}, {0, 4}};  // count, capacity
  for (const OpDef* forward : AllOps()) {
    // The operation itself, or those that it may be the gradient of.
    if (forward != &op && !(forward->gradient && !op.infer && op.parts.size() == 0)) continue;
    if (!forward->infer && forward->parts.size() == 0) continue;
    const std::string_view first = forward->infer ? forward->name : *forward->parts.begin();
    for (const Setting& setting : SettingsFor(first)) {
      OpCase c{.graph = MakeGraph(*forward, setting)};
      if (forward != &op) AddGradient(c.graph);
      const auto& nodes = c.graph.nodes;
      const auto tried =
          std::ranges::find_if(nodes, [&](const Node& node) { return node.op == &op; });
      if (tried == nodes.end()) break;  // not its gradient
      c.node = size_t(tried - nodes.begin());
      for (const auto& [count, capacity] : sizes) {
        for (int on = -1; on < int(op.inputs.size()); ++on) {
          if (on >= 0 && !(op.in_place >> on & 1)) continue;
          c.count = count, c.capacity = capacity, c.in_place = on;
          c.text = Explain(op, *forward, setting, c);
          cases.push_back(c);
        }
      }
    }
  }
  return cases;
}

std::shared_ptr<const Program> MakeProgram(const OpCase& c, const std::vector<size_t>& nodes) {
  auto program = std::make_shared<Program>();
  program->capacity = c.capacity;
  program->graph = c.graph;
  program->layout = LayOut(c.graph);
  program->buckets = CutBuckets(program->layout, size_t{1} << 40);

  std::vector<size_t> offsets;
  for (const ValueSpec& spec : c.graph.values) {
    offsets.push_back(program->activation_bytes);
    const size_t bytes = size_t(spec.bytes(c.capacity)) + kGap;
    program->activation_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  const Node& tried = c.graph.nodes[c.node];
  if (c.in_place >= 0) offsets[tried.outputs[0]] = offsets[tried.inputs[c.in_place]];

  auto operand = [&](ValueId value) {
    return Operand{.value = value, .spec = c.graph.values[value], .offset = offsets[value]};
  };
  for (const size_t index : nodes) {
    const Node& node = c.graph.nodes[index];
    Instruction& i = program->instructions.emplace_back();
    i.op = node.op, i.name = node.name, i.attributes = node.attributes, i.backward = node.backward;
    for (const ValueId value : node.inputs) i.inputs.push_back(operand(value));
    for (const ValueId value : node.outputs) i.outputs.push_back(operand(value));
    for (const int k : node.parameters) i.parameters.push_back(program->layout.parameters[k]);
    for (const int k : node.statistics) i.statistics.push_back(program->layout.statistics[k]);
  }
  if (program->layout.weights > 0 && !nodes.empty()) program->instructions.back().finishes = 0;
  return program;
}

}  // namespace trireme::check
