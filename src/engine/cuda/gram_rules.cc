#include "engine/cuda/gram_rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/cuda/kernels.h"
#include "graph/op.h"

namespace trireme::cuda {
namespace {

bool IsForward(std::string_view op) {
  return op == "conv2d_batch_norm" || op == "conv2d_batch_norm_add_relu";
}

// Where a gradient has the mean that forward found; -1: it is none of these.
int MeanOf(std::string_view op) {
  if (op == "conv2d_batch_norm_grad") return 1;
  if (op == "add_relu_conv2d_batch_norm_grad") return 4;
  return -1;
}

// About seven passes over y less, ten small kernels more. By the times of single kernels in a step
// of ResNet-50 on an H200, 26 million values cost more than they gain; both ways were not timed
// side by side.
constexpr int64_t kFewestValues = int64_t{1} << 25;
// A product of x^T x and W is computed in float32: x has at least so many rows for its channels.
constexpr int64_t kRowsShare = 32;

}  // namespace

bool IsWorthGram(const Graph& graph, std::span<const Node* const> chain, int capacity) {
  const Node& conv = *chain[0];
  if (!IsProduct(conv.attributes) || conv.attributes.bias) return false;
  const Shape x = graph.values[conv.inputs[0]].shape, y = graph.values[conv.outputs[0]].shape;
  const int64_t rows = int64_t{capacity} * y.height * y.width, in = x.channels, out = y.channels;
  return out >= 2 * in && in % 8 == 0 && out % 8 == 0 && rows * out >= kFewestValues &&
         in * in <= kRowsShare * rows;
}

std::vector<Fusion> GramFusions() {
  return {{&FindOp("conv2d_batch_norm"), IsWorthGram},
          {&FindOp("conv2d_batch_norm_add_relu")},
          {&FindOp("add_relu_conv2d_batch_norm_grad")}};
}

bool IsGramOp(std::string_view op) { return IsForward(op) || MeanOf(op) >= 0; }

namespace {

// The sums of what a forward operation reads come from who makes it, if he can.
void TakeSums(Graph& graph, Node& forward) {
  const auto maker = std::ranges::find_if(graph.nodes, [&](const Node& node) {
    return node.op->name == std::string_view("batch_norm_relu") &&
           node.outputs[0] == forward.inputs[0];
  });
  if (maker == graph.nodes.end()) return;
  if (maker->outputs.size() == 3) {
    maker->outputs.push_back(ValueId(graph.values.size()));
    const int channels = graph.values[size_t(forward.inputs[0])].shape.channels;
    graph.values.push_back({.shape = {.channels = channels}, .per_sample = false});
  }
  forward.inputs.push_back(maker->outputs[3]);
}

}  // namespace

std::string KeepMoments(Graph& graph) {
  int kept = 0;
  for (size_t f = 0; f < graph.nodes.size(); ++f) {
    if (!IsForward(graph.nodes[f].op->name)) continue;
    TakeSums(graph, graph.nodes[f]);
    for (Node& grad : graph.nodes) {
      const int mean = MeanOf(grad.op->name);
      if (mean < 0 || grad.inputs[size_t(mean)] != graph.nodes[f].outputs[1]) continue;
      const int in = graph.values[graph.nodes[f].inputs[0]].shape.channels;
      const int out = graph.values[graph.nodes[f].outputs[0]].shape.channels;
      const ValueId moments = ValueId(graph.values.size());
      graph.values.push_back(
          {.shape = {.channels = int(MomentsSize(in, out))}, .per_sample = false});
      graph.nodes[f].outputs.push_back(moments);
      grad.inputs.push_back(moments);
      ++kept;
    }
  }
  return kept ? fmt::format("gram: {} products normalised without their results", kept) : "";
}

}  // namespace trireme::cuda
