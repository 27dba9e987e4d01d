#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  if (attributes.kernel > 16) {
    throw Error("windows are at most 16x16, got {0}x{0}: a position in one is stored in a byte",
                attributes.kernel);
  }
  const Shape y = WindowedShape(inputs[0].shape, attributes, inputs[0].shape.channels);
  return {.outputs = {{.shape = y}, {.shape = y, .element = Element::kByte}}};
}

void Gradient(GradientBuilder& g) {
  if (!g.Needs(0)) return;
  g.Set(0, g.Add("max_pool_grad", {g.output(1), g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kMaxPool = {
    .name = "max_pool",
    .summary = "the largest value of each window and its position; padding never wins",
    .outputs = {"y", "index"},
    .infer = Infer,
    .gradient = Gradient};
extern constinit const OpDef kMaxPoolGrad = {
    .name = "max_pool_grad",
    .summary = "each dy goes to the position of its maximum",
    .inputs = {"index", "dy"},
    .outputs = {"dx"}};

}  // namespace trireme
