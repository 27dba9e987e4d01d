#include "base/error.h"
#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

// The square of scores is never held: a row's largest score and sum, as one logarithm, are enough
// to compute any part of it again.
Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  const Shape x = inputs[0].shape;
  const int heads = attributes.heads;
  if (heads < 1 || x.channels % (3 * int64_t{heads}) != 0) {
    throw Error("needs queries, keys and values, each divisible by {} heads, got {}", heads,
                ToText(x));
  }
  const Shape y{.height = x.height, .width = x.width, .channels = x.channels / 3};
  return {.outputs = {{.shape = y}, {.shape = {x.height, x.width, heads}}}};
}

// `products` of tokens x tokens x channels.
Cost CountProducts(const Shape& qkv, double products) {
  const double tokens = double(qkv.height) * qkv.width;
  return {.multiply_adds = products * tokens * tokens * qkv.channels / 3};
}

Cost CountForward(const Graph& graph, const Node& node) {
  return CountProducts(graph.values[node.inputs[0]].shape, 2);
}

Cost CountBackward(const Graph& graph, const Node& node) {
  return CountProducts(graph.values[node.inputs[0]].shape, 5);
}

void Gradient(GradientBuilder& g) {
  if (!g.Needs(0)) return;
  g.Set(0, g.Add("attention_grad", {g.input(), g.output(0), g.output(1), g.d_output()},
                 {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kAttention = {
    .name = "attention",
    .summary =
        "y = softmax(q k^T / sqrt(channels of a head)) v over the tokens, head by head; x "
        "holds all q, then all k, then all v",
    .outputs = {"y", "log_sum"},
    .infer = Infer,
    .cost = CountForward,
    .gradient = Gradient};
extern constinit const OpDef kAttentionGrad = {
    .name = "attention_grad",
    .summary = "gradients of q, k and v; the softmax is computed again from log_sum",
    .inputs = {"x", "y", "log_sum", "dy"},
    .outputs = {"dx"},
    .cost = CountBackward};

}  // namespace trireme
