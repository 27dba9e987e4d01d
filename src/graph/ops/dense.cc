#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  if (!attributes.tokens) RequireFlat(inputs[0].shape);
  const int64_t in = inputs[0].shape.channels, out = attributes.channels;
  if (out < 1) throw Error("needs at least one output, got {}", out);
  Shape y = inputs[0].shape;
  y.channels = attributes.channels;
  Signature signature{.outputs = {{.shape = y}}};
  // Layers for tokens start as transformers do.
  const bool tokens = attributes.tokens;
  signature.parameters.push_back(
      {.name = "weight",
       .shape = {in, out},
       .form = FileForm::kDense,
       .initial = tokens ? Initial::kXavierUniform : Initial::kUniformFanIn,
       .decays = true,
       .fan_in = in,
       .flattened = {.channels = inputs[0].shape.channels}});
  if (attributes.bias) {
    signature.parameters.push_back({.name = "bias",
                                    .shape = {out},
                                    .initial = tokens ? Initial::kZero : Initial::kUniformFanIn,
                                    .fan_in = in});
  }
  return signature;
}

// Each weight is used once for each token; x, y and their gradients all have them.
Cost CountProducts(const Graph& graph, const Node& node) {
  const Shape x = graph.values[node.inputs[0]].shape;
  return {.multiply_adds =
              double(graph.parameters[node.parameters[0]].size()) * x.height * x.width};
}

void Gradient(GradientBuilder& g) {
  g.Add("dense_grad_weights", {g.input(), g.d_output()}, {});
  if (g.Needs(0)) g.Set(0, g.Add("dense_grad_input", {g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kDense = {.name = "dense",
                                       .summary = "y = x W + b, for each token if there are tokens",
                                       .infer = Infer,
                                       .cost = CountProducts,
                                       .gradient = Gradient};
extern constinit const OpDef kDenseGradWeights = {.name = "dense_grad_weights",
                                                  .summary = "dW = sum of x^T dy, db = sum of dy",
                                                  .inputs = {"x", "dy"},
                                                  .outputs = {},
                                                  .cost = CountProducts,
                                                  .writes_gradients = true};
extern constinit const OpDef kDenseGradInput = {.name = "dense_grad_input",
                                                .summary = "dx = dy W^T",
                                                .inputs = {"dy"},
                                                .outputs = {"dx"},
                                                .cost = CountProducts};
extern constinit const OpDef kDenseGradInputReluGrad = {
    .name = "dense_grad_input_relu_grad",
    .summary = "dense_grad_input, then relu_grad of the layer before",
    .inputs = {"dy", "y"},
    .outputs = {"dx"},
    .cost = CountProducts,
    .parts = {"dense_grad_input", "relu_grad"}};
extern constinit const OpDef kDenseRelu = {
    .name = "dense_relu", .summary = "dense, then relu", .parts = {"dense", "relu"}};
extern constinit const OpDef kDenseSigmoid = {
    .name = "dense_sigmoid", .summary = "dense, then sigmoid", .parts = {"dense", "sigmoid"}};
extern constinit const OpDef kDenseTanh = {
    .name = "dense_tanh", .summary = "dense, then tanh", .parts = {"dense", "tanh"}};

}  // namespace trireme
