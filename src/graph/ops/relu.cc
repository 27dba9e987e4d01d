#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

// The sign of y is all that is needed, so x's memory is free again after forward.
void Gradient(GradientBuilder& g) {
  if (g.Needs(0)) g.Set(0, g.Add("relu_grad", {g.output(), g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kRelu = {.name = "relu",
                                      .summary = "y = max(x, 0)",
                                      .infer = KeepsShape,
                                      .gradient = Gradient,
                                      .in_place = 0b1};
extern constinit const OpDef kReluGrad = {.name = "relu_grad",
                                          .summary = "dx = dy where y > 0, else 0",
                                          .inputs = {"y", "dy"},
                                          .outputs = {"dx"},
                                          .in_place = 0b10};

}  // namespace trireme
