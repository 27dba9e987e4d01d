#include "engine/cuda/chosen.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "graph/op.h"

namespace trireme::cuda {

std::string KeepChosen(Graph& graph) {
  int kept = 0;
  for (Node& pool : graph.nodes) {
    if (pool.op->name != std::string_view("batch_norm_relu_max_pool")) continue;
    const auto grad = std::ranges::find_if(graph.nodes, [&](const Node& node) {
      return node.op->name == std::string_view("max_pool_batch_norm_relu_grad") &&
             node.inputs[0] == pool.outputs[1];
    });
    if (grad == graph.nodes.end()) continue;
    const ValueId chosen = ValueId(graph.values.size());
    graph.values.push_back({.shape = graph.values[size_t(pool.outputs[0])].shape});
    pool.outputs.push_back(chosen);
    grad->inputs.push_back(chosen);
    ++kept;
  }
  return kept ? fmt::format("pools: {} with what was chosen kept for backward", kept) : "";
}

}  // namespace trireme::cuda
