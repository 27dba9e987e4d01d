#include "engine/cuda/masks.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "engine/cuda/node_choice.h"
#include "graph/op.h"

namespace trireme::cuda {
namespace {

bool EndsABlock(const Node& node) {
  const std::string_view op = node.op->name;
  return op == "batch_norm_add_relu" || op == "conv2d_batch_norm_add_relu";
}

bool ReadsSigns(const Node& node) {
  const std::string_view op = node.op->name;
  return op == "add_relu_batch_norm_grad" || op == "add_relu_conv2d_batch_norm_grad";
}

}  // namespace

std::string MakeMasks(Graph& graph) {
  int made = 0;
  for (Node& ends : graph.nodes) {
    if (!EndsABlock(ends)) continue;
    const ValueId y = ends.outputs[0];
    const Shape shape = graph.values[y].shape;
    if (shape.channels % 8 != 0) continue;
    const auto asks = [&](const Node& node) {
      return ReadsSigns(node) && node.inputs[kSigns] == y;
    };
    if (std::ranges::none_of(graph.nodes, asks)) continue;
    const ValueId mask = ValueId(graph.values.size());
    graph.values.push_back(
        {.shape = {shape.height, shape.width, shape.channels / 8}, .element = Element::kByte});
    ends.outputs.push_back(mask);
    for (Node& node : graph.nodes) {
      if (!asks(node)) continue;
      node.inputs[kSigns] = mask;
      node.attributes.choice = kMasked;
    }
    ++made;
  }
  return made ? fmt::format("masks: {} instead of results that backward would read", made) : "";
}

}  // namespace trireme::cuda
