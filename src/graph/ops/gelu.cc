#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

// y does not tell x: below -0.75 the function rises again.
void Gradient(GradientBuilder& g) {
  if (g.Needs(0)) g.Set(0, g.Add("gelu_grad", {g.input(), g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kGelu = {.name = "gelu",
                                      .summary = "y = x (1 + erf(x / sqrt(2))) / 2",
                                      .infer = KeepsShape,
                                      .gradient = Gradient,
                                      .in_place = 0b1};
extern constinit const OpDef kGeluGrad = {
    .name = "gelu_grad",
    .summary = "dx = dy ((1 + erf(x / sqrt(2))) / 2 + x exp(-x^2 / 2) / sqrt(2 pi))",
    .inputs = {"x", "dy"},
    .outputs = {"dx"},
    .in_place = 0b11};

}  // namespace trireme
