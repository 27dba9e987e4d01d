// Engines that have these find mean and variance of what conv2d makes, and the gradients, from its
// input and its weights: what it makes lies nowhere, not even for backward.
#include "graph/op.h"

namespace trireme {
namespace {

void Gradient(GradientBuilder& g) {
  const ValueId dx =
      g.Add("conv2d_batch_norm_grad", {g.input(), g.output(1), g.output(2), g.d_output()},
            {g.spec(g.input())})[0];
  if (g.Needs(0)) g.Set(0, dx);
}

// Those of the two gradients of conv2d.
Cost CountBackward(const Graph& graph, const Node& node) {
  const Shape dy = graph.values[node.inputs[3]].shape;
  return {.multiply_adds =
              2 * double(graph.parameters[node.parameters[0]].size()) * dy.height * dy.width};
}

}  // namespace

extern constinit const OpDef kConv2dBatchNorm = {.name = "conv2d_batch_norm",
                                                 .summary = "conv2d, then batch_norm",
                                                 .outputs = {"y", "mean", "inv_std"},
                                                 .gradient = Gradient,
                                                 .parts = {"conv2d", "batch_norm"}};
extern constinit const OpDef kConv2dBatchNormGrad = {
    .name = "conv2d_batch_norm_grad",
    .summary = "gradients of the input, the kernel, the scale and the shift of conv2d_batch_norm",
    .inputs = {"x", "mean", "inv_std", "dy"},
    .outputs = {"dx"},
    .cost = CountBackward,
    .writes_gradients = true};
extern constinit const OpDef kConv2dBatchNormAddRelu = {
    .name = "conv2d_batch_norm_add_relu",
    .summary = "conv2d_batch_norm, then add, then relu",
    .inputs = {"x", "residual"},
    .outputs = {"y", "mean", "inv_std"},
    .parts = {"conv2d_batch_norm", "add", "relu"}};
extern constinit const OpDef kAddReluConv2dBatchNormGrad = {
    .name = "add_relu_conv2d_batch_norm_grad",
    .summary = "add_relu_grad, then conv2d_batch_norm_grad; the first one's result is one, too",
    .inputs = {"a", "b", "y", "x", "mean", "inv_std"},
    .outputs = {"dx", "dsum"},
    .parts = {"add", "relu_grad", "conv2d_batch_norm_grad"},
    .keeps = 1};

}  // namespace trireme
