#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  const int64_t in = inputs[0].shape.channels, out = attributes.channels;
  if (out < 1) throw Error("needs at least one output channel, got {}", out);
  Signature signature{
      .outputs = {{.shape = WindowedShape(inputs[0].shape, attributes, attributes.channels)}}};
  const int64_t kernel = attributes.kernel;
  signature.parameters.push_back({.name = "weight",
                                  .shape = {kernel, kernel, in, out},
                                  .form = FileForm::kConv2d,
                                  .initial = Initial::kHeFanOut,
                                  .decays = true});
  if (attributes.bias) signature.parameters.push_back({.name = "bias", .shape = {out}});
  return signature;
}

// Of the output's places for each weight; y has them in forward, dy in backward.
Cost CountProducts(const Graph& graph, ValueId output, const Node& node) {
  const Shape y = graph.values[output].shape;
  return {.multiply_adds =
              double(graph.parameters[node.parameters[0]].size()) * y.height * y.width};
}

Cost CountForward(const Graph& graph, const Node& node) {
  return CountProducts(graph, node.outputs[0], node);
}

Cost CountBackward(const Graph& graph, const Node& node) {
  return CountProducts(graph, node.inputs.back(), node);
}

void Gradient(GradientBuilder& g) {
  g.Add("conv2d_grad_weights", {g.input(), g.d_output()}, {});
  if (g.Needs(0)) g.Set(0, g.Add("conv2d_grad_input", {g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kConv2d = {
    .name = "conv2d",
    .summary = "convolution with a square kernel and zero padding",
    .infer = Infer,
    .cost = CountForward,
    .gradient = Gradient};
extern constinit const OpDef kConv2dGradWeights = {
    .name = "conv2d_grad_weights",
    .summary = "gradients of the kernel and the bias",
    .inputs = {"x", "dy"},
    .outputs = {},
    .cost = CountBackward,
    .writes_gradients = true};
extern constinit const OpDef kConv2dGradInput = {.name = "conv2d_grad_input",
                                                 .summary = "dy spread back over the windows",
                                                 .inputs = {"dy"},
                                                 .outputs = {"dx"},
                                                 .cost = CountBackward};
extern constinit const OpDef kConv2dRelu = {
    .name = "conv2d_relu", .summary = "conv2d, then relu", .parts = {"conv2d", "relu"}};

}  // namespace trireme
