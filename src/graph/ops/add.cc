#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  if (inputs[0] != inputs[1]) {
    throw Error("cannot add {} and {}", ToText(inputs[0].shape), ToText(inputs[1].shape));
  }
  return KeepsShape(inputs, attributes);
}

void Gradient(GradientBuilder& g) {
  for (int i : {0, 1}) {
    if (g.Needs(i)) g.Set(i, g.d_output());
  }
}

}  // namespace

extern constinit const OpDef kAdd = {.name = "add",
                                     .summary = "y = a + b",
                                     .inputs = {"a", "b"},
                                     .infer = Infer,
                                     .gradient = Gradient,
                                     .in_place = 0b11};
extern constinit const OpDef kAddReluGrad = {
    .name = "add_relu_grad",
    .summary = "add, then relu_grad: where a value is read twice, the sum of its gradients",
    .inputs = {"a", "b", "y"},
    .outputs = {"dx"},
    .in_place = 0b11,
    .parts = {"add", "relu_grad"}};

}  // namespace trireme
