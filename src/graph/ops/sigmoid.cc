#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

// y tells the slope, so x's memory is free again after forward.
void Gradient(GradientBuilder& g) {
  if (g.Needs(0))
    g.Set(0, g.Add("sigmoid_grad", {g.output(), g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kSigmoid = {.name = "sigmoid",
                                         .summary = "y = 1 / (1 + exp(-x))",
                                         .infer = KeepsShape,
                                         .gradient = Gradient,
                                         .in_place = 0b1};
extern constinit const OpDef kSigmoidGrad = {.name = "sigmoid_grad",
                                             .summary = "dx = dy y (1 - y)",
                                             .inputs = {"y", "dy"},
                                             .outputs = {"dx"},
                                             .in_place = 0b10};

}  // namespace trireme
