#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  if (!(attributes.rate >= 0 && attributes.rate < 1)) {
    throw Error("a dropout rate must be at least 0 and below 1, got {}", attributes.rate);
  }
  return KeepsShape(inputs, attributes);
}

// The mask is a function of the sample's position: drawn again, not stored.
void Gradient(GradientBuilder& g) {
  if (g.Needs(0)) g.Set(0, g.Add("dropout_grad", {g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kDropout = {
    .name = "dropout",
    .summary = "sets a share `rate` of the values to 0 and divides the others by 1 - rate",
    .infer = Infer,
    .gradient = Gradient,
    .evaluate_as = ""};
extern constinit const OpDef kDropoutGrad = {
    .name = "dropout_grad", .summary = "the same mask on dy", .inputs = {"dy"}, .outputs = {"dx"}};

}  // namespace trireme
