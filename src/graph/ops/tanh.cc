#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

// y tells the slope, so x's memory is free again after forward.
void Gradient(GradientBuilder& g) {
  if (g.Needs(0)) g.Set(0, g.Add("tanh_grad", {g.output(), g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kTanh = {.name = "tanh",
                                      .summary = "y = tanh(x)",
                                      .infer = KeepsShape,
                                      .gradient = Gradient,
                                      .in_place = 0b1};
extern constinit const OpDef kTanhGrad = {.name = "tanh_grad",
                                          .summary = "dx = dy (1 - y^2)",
                                          .inputs = {"y", "dy"},
                                          .outputs = {"dx"},
                                          .in_place = 0b10};

}  // namespace trireme
