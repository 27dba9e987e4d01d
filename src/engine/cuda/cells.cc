#include "engine/cuda/cells.h"

#include <fmt/core.h>

#include <optional>
#include <string_view>
#include <vector>

#include "engine/cuda/fold.h"
#include "engine/cuda/kernels.h"
#include "engine/cuda/node_choice.h"
#include "graph/op.h"

namespace trireme::cuda {
namespace {

std::string_view OpOf(const Node& node) { return node.op->name; }

std::vector<Node*> ReadersOf(Graph& graph, ValueId value) {
  std::vector<Node*> readers;
  for (Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      if (input == value) readers.push_back(&node);
    }
  }
  return readers;
}

std::optional<Fold> FoldFor(const Graph& graph, const Node& conv) {
  const Shape image = graph.values[conv.inputs[0]].shape, y = graph.values[conv.outputs[0]].shape;
  if (y.height % 2 != 0 || y.width % 2 != 0) return {};
  return FoldOf(WindowOf(conv.attributes, image, y), /*in_cells=*/true);
}

bool PoolsCells(const Graph& graph, const Node& node) {
  const Shape x = graph.values[node.inputs[0]].shape, y = graph.values[node.outputs[0]].shape;
  return SlidesOverCells(WindowOf(node.parts[1].attributes, x, y));
}

// All nodes that would write or read cells, if no other node reads them.
std::vector<Node*> NodesAround(Graph& graph, Node& conv) {
  std::vector<Node*> nodes = {&conv};
  const auto readers = ReadersOf(graph, conv.outputs[0]);
  bool forward = false, backward = false;
  for (Node* const reader : readers) {
    if (OpOf(*reader) == "batch_norm_relu_max_pool" && PoolsCells(graph, *reader)) {
      forward = true;
    } else if (OpOf(*reader) == "max_pool_batch_norm_relu_grad") {
      backward = true;
      const auto of_gradient = ReadersOf(graph, reader->outputs[0]);
      if (of_gradient.size() != 1 || OpOf(*of_gradient[0]) != "conv2d_grad_weights" ||
          of_gradient[0]->inputs[0] != conv.inputs[0]) {
        return {};
      }
      nodes.push_back(of_gradient[0]);
    } else {
      return {};
    }
    nodes.push_back(reader);
  }
  if (!forward || !backward || readers.size() != 2) return {};
  return nodes;
}

}  // namespace

std::string MakeCells(Graph& graph, Element element) {
  int made = 0;
  for (Node& conv : graph.nodes) {
    if (OpOf(conv) != "conv2d") continue;
    const std::optional<Fold> fold = FoldFor(graph, conv);
    const auto nodes = fold ? NodesAround(graph, conv) : std::vector<Node*>();
    if (nodes.empty()) continue;
    const ValueId folded = ValueId(graph.values.size());
    graph.values.push_back({.shape = {.channels = int(fold->image())}, .element = element});
    for (Node* const node : nodes) {
      node->attributes.choice = kInCells;
      if (OpOf(*node) == "conv2d") node->outputs.push_back(folded);
      if (OpOf(*node) == "conv2d_grad_weights") node->inputs.push_back(folded);
    }
    ++made;
  }
  return made ? fmt::format("cells: {} stem with 2x2 results together", made) : "";
}

}  // namespace trireme::cuda
