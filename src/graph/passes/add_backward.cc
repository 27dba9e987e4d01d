#include <fmt/core.h>

#include "base/assert.h"
#include "graph/op.h"
#include "graph/passes/passes.h"

namespace trireme::passes {
namespace {

// Gradients by value; a value that several operations read gets the sum of theirs.
class Gradients {
 public:
  explicit Gradients(Graph& graph) : graph_(graph), of_(graph.values.size(), -1) {}
  ValueId of(ValueId value) const { return of_[value]; }

  void Contribute(ValueId value, ValueId gradient) {
    if (of_[value] < 0) {
      of_[value] = gradient;
      return;
    }
    const ValueId sum = int(graph_.values.size());
    graph_.values.push_back(graph_.values[value]);
    graph_.nodes.push_back({.op = &FindOp("add"),
                            .name = "gradient",
                            .inputs = {of_[value], gradient},
                            .outputs = {sum},
                            .backward = true});
    of_[value] = sum;
  }

 private:
  Graph& graph_;
  std::vector<ValueId> of_;
};

}  // namespace

std::string AddBackward(Graph& graph) {
  const int num_forward = int(graph.nodes.size());
  const Node loss = graph.loss();
  graph.nodes.push_back(
      {.op = &FindOp("tally"), .name = "tally", .inputs = {loss.inputs[0], loss.outputs[0]}});

  Gradients gradients(graph);
  for (int i = num_forward - 1; i >= 0; --i) {
    const Node node = graph.nodes[i];  // a copy: adding nodes moves the original
    const ValueId d_output = gradients.of(node.outputs[0]);
    const bool is_loss = i == num_forward - 1;
    if (!is_loss && d_output < 0) continue;  // the loss does not depend on it
    if (node.frozen) continue;
    TRIREME_ASSERT(node.op->gradient);
    GradientBuilder build(graph, node, d_output);
    node.op->gradient(build);
    for (const auto& [input, gradient] : build.gradients) {
      if (node.inputs[input] != 0) gradients.Contribute(node.inputs[input], gradient);
    }
  }
  return fmt::format("backward: {} operations forward, {} backward", num_forward + 1,
                     graph.nodes.size() - num_forward - 1);
}

}  // namespace trireme::passes
