#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes&) {
  return {.outputs = {{.shape = {.channels = inputs[0].shape.channels}}}};
}

void Gradient(GradientBuilder& g) {
  if (g.Needs(0))
    g.Set(0, g.Add("global_average_pool_grad", {g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kGlobalAveragePool = {
    .name = "global_average_pool",
    .summary = "the mean of each channel of a sample",
    .infer = Infer,
    .gradient = Gradient};
extern constinit const OpDef kGlobalAveragePoolGrad = {
    .name = "global_average_pool_grad",
    .summary = "each dy is spread evenly over its channel",
    .inputs = {"dy"},
    .outputs = {"dx"}};

}  // namespace trireme
