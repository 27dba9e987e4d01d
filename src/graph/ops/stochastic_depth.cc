#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  if (!(attributes.rate >= 0 && attributes.rate < 1)) {
    throw Error("a stochastic depth rate must be at least 0 and below 1, got {}", attributes.rate);
  }
  return KeepsShape(inputs, attributes);
}

// Which samples are left out is a function of their positions: drawn again, not stored.
void Gradient(GradientBuilder& g) {
  if (!g.Needs(0)) return;
  g.Set(0, g.Add("stochastic_depth_grad", {g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kStochasticDepth = {
    .name = "stochastic_depth",
    .summary =
        "sets a share `rate` of the samples to 0 and divides the others by 1 - rate: a "
        "residual branch that is left out at times",
    .infer = Infer,
    .gradient = Gradient,
    .evaluate_as = ""};
extern constinit const OpDef kStochasticDepthGrad = {.name = "stochastic_depth_grad",
                                                     .summary = "the same samples of dy",
                                                     .inputs = {"dy"},
                                                     .outputs = {"dx"}};

}  // namespace trireme
