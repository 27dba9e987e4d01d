#include "engine/check/op_case.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/assert.h"
#include "base/error.h"
#include "engine/check/tries.h"
#include "graph/layout.h"
#include "graph/passes/passes.h"

namespace trireme::check {
namespace {

constexpr size_t kAlignment = 64, kGap = 64;  // bytes

constexpr ValueId kNone = -1;

ValueId Open(Graph& graph, const ValueSpec& spec) {
  graph.values.push_back(spec);
  return ValueId(graph.values.size() - 1);
}

// A node of a forward operation on open values, or on `before` and open ones like it (residuals).
// Throws Error if they do not fit.
Node MakeForward(Graph& graph, const OpDef& op, const Setting& setting, ValueId before) {
  Node node{.op = &op, .name = "tried", .attributes = setting.attributes};
  if (before != kNone) node.inputs.push_back(before);
  while (node.inputs.size() < op.inputs.size()) {
    const size_t i = node.inputs.size();
    node.inputs.push_back(Open(
        graph, before != kNone ? graph.values[before] : ValueSpec{.shape = setting.inputs.at(i)}));
  }
  std::vector<ValueSpec> specs;
  for (const ValueId input : node.inputs) specs.push_back(graph.values[input]);
  const Signature signature = op.infer(specs, setting.attributes);
  for (const ValueSpec& spec : signature.outputs) node.outputs.push_back(Open(graph, spec));
  for (const ParameterSpec& spec : signature.parameters) {
    node.parameters.push_back(int(graph.parameters.size()));
    graph.parameters.push_back(spec);
  }
  for (const ParameterSpec& spec : signature.statistics) {
    node.statistics.push_back(int(graph.statistics.size()));
    graph.statistics.push_back(spec);
  }
  return node;
}

Node MakeNode(Graph& graph, const OpDef& op, const Setting& setting, ValueId before);

// The node that the gradient rule of `forward` adds for `op`, behind the forward node, which joins
// the graph; none: it adds none, or the setting does not fit. `before` is the gradient of output 0.
std::optional<Node> MakeGradient(Graph& graph, const OpDef& op, const OpDef& forward,
                                 const Setting& setting, ValueId before) {
  const Graph kept = graph;
  try {
    const Node node = MakeNode(graph, forward, setting, kNone);
    const ValueSpec y = graph.values[node.outputs.at(0)];
    if (before == kNone || graph.values[before] == y) {
      graph.nodes.push_back(node);
      const size_t size = graph.nodes.size();
      GradientBuilder build(graph, node, before == kNone ? Open(graph, y) : before);
      forward.gradient(build);
      const std::vector<Node> added(graph.nodes.begin() + std::ptrdiff_t(size), graph.nodes.end());
      graph.nodes.resize(size);
      const auto found = std::ranges::find(added, &op, &Node::op);
      if (found != added.end()) return *found;
    }
  } catch (const Error&) {  // it does not fit
  }
  graph = kept;
  return {};
}

// Settings with which the operation may make a `y`: of its shape, or as large as a window needs.
std::vector<Setting> SettingsBefore(const OpDef& op, const Shape& y) {
  std::vector<Setting> all;
  for (const Setting& setting : SettingsFor(op)) {
    all.push_back(setting);
    for (Shape& shape : all.back().inputs) shape = y;
    Setting window = setting;
    Attributes& a = window.attributes;
    a.channels = y.channels;
    const auto before = [&](int extent) {
      return (extent - 1) * a.stride + a.kernel - 2 * a.padding;
    };
    const Shape x{before(y.height), before(y.width), setting.inputs[0].channels};
    if (x.height < 1 || x.width < 1) continue;
    window.inputs[0] = x;
    all.push_back(window);
  }
  return all;
}

// A gradient inside a chain: of any forward operation whose result has the shape of `before`.
Node MakeGradientBehind(Graph& graph, const OpDef& op, ValueId before) {
  for (const OpDef* forward : AllOps()) {
    if (!forward->gradient) continue;
    for (const Setting& setting : SettingsBefore(*forward, graph.values[before].shape)) {
      if (auto node = MakeGradient(graph, op, *forward, setting, before)) return *node;
    }
  }
  throw Error("no {} with this shape", op.name);
}

// Of a fused operation: its parts one after another, joined. The first, or the operation whose
// gradient it is, has the setting; the others have what they are tried with first.
Node MakeChain(Graph& graph, const OpDef& op, Node first) {
  std::vector<Node> parts = {std::move(first)};
  for (const char* name : std::span(op.parts).subspan(1)) {
    const OpDef& part = FindOp(name);
    const ValueId before = parts.back().outputs.at(0);
    parts.push_back(part.infer || part.parts.size() > 0
                        ? MakeNode(graph, part, SettingsFor(part)[0], before)
                        : MakeGradientBehind(graph, part, before));
  }
  const bool backward = std::ranges::any_of(parts, &Node::backward);
  Node node = passes::Join(op, std::move(parts));
  node.backward = backward;
  return node;
}

Node MakeNode(Graph& graph, const OpDef& op, const Setting& setting, ValueId before) {
  if (op.parts.size() == 0) return MakeForward(graph, op, setting, before);
  return MakeChain(graph, op, MakeNode(graph, FindOp(*op.parts.begin()), setting, before));
}

// Else it is a gradient, or a chain that begins with one.
bool IsForward(const OpDef& op) {
  return op.parts.size() > 0 ? IsForward(FindOp(*op.parts.begin())) : op.infer != nullptr;
}

// The graph of one case, whose last node is to be tried: `op` itself, or a gradient of `forward`.
// None: it is not its gradient, or parts of a chain do not fit.
std::optional<Graph> MakeGraph(const OpDef& op, const OpDef& forward, const Setting& setting) {
  Graph graph;
  graph.values.push_back({});
  const bool chain = op.parts.size() > 0;
  try {
    if (IsForward(op)) {
      graph.nodes.push_back(MakeNode(graph, op, setting, kNone));
      return graph;
    }
    const OpDef& first = chain ? FindOp(*op.parts.begin()) : op;
    auto node = MakeGradient(graph, first, forward, setting, kNone);
    if (!node) return {};
    if (chain) node = MakeChain(graph, op, *std::move(node));
    graph.nodes.push_back(*std::move(node));
    return graph;
  } catch (const Error&) {
    if (chain) return {};
    throw;
  }
}

std::string Explain(const OpDef& op, const OpDef& forward, const Setting& s, const OpCase& c) {
  std::string inputs;
  for (const Shape& shape : s.inputs) inputs += (inputs.empty() ? "" : ", ") + ToText(shape);
  const Attributes& a = s.attributes;
  return fmt::format(
      "{} of {}({}): channels {}, kernel {}, stride {}, padding {}, bias {}, affine {}, tokens {}, "
      "heads {}, smoothing {}; {} of {} samples{}",
      op.name, forward.name, inputs, a.channels, a.kernel, a.stride, a.padding, a.bias, a.affine,
      a.tokens, a.heads, a.smoothing, c.count, c.capacity,
      c.in_place < 0 ? "" : fmt::format(", in place on input {}", c.in_place));
}

}  // namespace

std::vector<OpCase> CasesFor(const OpDef& op) {
  std::vector<OpCase> cases;
  if (op.view) return cases;  // never computed
  std::vector<const OpDef*> forwards = {&op};
  if (!IsForward(op)) {  // those that it may be the gradient of
    forwards.assign(AllOps().begin(), AllOps().end());
    std::erase_if(forwards, [](const OpDef* forward) { return !forward->gradient; });
  }
  for (const OpDef* forward : forwards) {
    for (const Setting& setting : SettingsFor(*forward)) {
      auto graph = MakeGraph(op, *forward, setting);
      if (!graph) continue;
      OpCase c{.graph = *std::move(graph)};
      c.node = c.graph.nodes.size() - 1;
      // Of vectors, a program for many samples is no large one.
      const bool is_vector = setting.inputs[0].height * setting.inputs[0].width == 1;
      const std::pair<int, int> sizes[] = {
          {1, 1}, {3, 3}, {2, is_vector ? 64 : 5}, {0, 4}};  // count, capacity
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

std::vector<OpCase> NarrowCases(const OpCase& c, const NarrowOperands& narrow, Element element) {
  std::vector<ValueId> values;
  const Node& node = c.graph.nodes[c.node];
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (narrow.inputs >> i & 1) values.push_back(node.inputs[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (narrow.outputs >> i & 1) values.push_back(node.outputs[i]);
  }
  std::vector<OpCase> cases;
  const unsigned all = (1u << values.size()) - 1;
  for (unsigned chosen = narrow.alike ? all : 1; chosen && chosen <= all; ++chosen) {
    OpCase& choice = cases.emplace_back(c);
    for (size_t i = 0; i < values.size(); ++i) {
      if (chosen >> i & 1) choice.graph.values[values[i]].element = element;
    }
    choice.text += fmt::format(", {} {:b}", NameOf(element), chosen);
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
    program->instructions.push_back(
        MakeInstruction(c.graph.nodes[index], program->layout, operand));
  }
  if (program->layout.weights > 0 && !nodes.empty()) program->instructions.back().finishes = {0};
  return program;
}

}  // namespace trireme::check
