#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  RequireFlat(inputs[0].shape);
  const int64_t in = inputs[0].shape.channels, out = attributes.channels;
  if (out < 1) throw Error("needs at least one output, got {}", out);
  Signature signature{.outputs = {{.shape = {.channels = attributes.channels}}}};
  signature.parameters.push_back({.name = "weight",
                                  .shape = {in, out},
                                  .form = FileForm::kDense,
                                  .initial = Initial::kUniformFanIn,
                                  .decays = true,
                                  .fan_in = in,
                                  .flattened = inputs[0].shape});
  if (attributes.bias) {
    signature.parameters.push_back(
        {.name = "bias", .shape = {out}, .initial = Initial::kUniformFanIn, .fan_in = in});
  }
  return signature;
}

Cost CountProducts(const Graph& graph, const Node& node) {
  return {.multiply_adds = double(graph.parameters[node.parameters[0]].size())};
}

void Gradient(GradientBuilder& g) {
  g.Add("dense_grad_weights", {g.input(), g.d_output()}, {});
  if (g.Needs(0)) g.Set(0, g.Add("dense_grad_input", {g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kDense = {.name = "dense",
                                       .summary = "y = x W + b",
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
extern constinit const OpDef kDenseRelu = {
    .name = "dense_relu", .summary = "dense, then relu", .parts = {"dense", "relu"}};
extern constinit const OpDef kDenseSigmoid = {
    .name = "dense_sigmoid", .summary = "dense, then sigmoid", .parts = {"dense", "sigmoid"}};
extern constinit const OpDef kDenseTanh = {
    .name = "dense_tanh", .summary = "dense, then tanh", .parts = {"dense", "tanh"}};

}  // namespace trireme
