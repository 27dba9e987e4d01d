#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  return {
      .outputs = {{.shape = WindowedShape(inputs[0].shape, attributes, inputs[0].shape.channels)}}};
}

void Gradient(GradientBuilder& g) {
  if (g.Needs(0)) g.Set(0, g.Add("average_pool_grad", {g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kAveragePool = {
    .name = "average_pool",
    .summary = "the mean of each window; padding counts as zeros",
    .infer = Infer,
    .gradient = Gradient};
extern constinit const OpDef kAveragePoolGrad = {
    .name = "average_pool_grad",
    .summary = "each dy is spread evenly over its window",
    .inputs = {"dy"},
    .outputs = {"dx"}};

}  // namespace trireme
