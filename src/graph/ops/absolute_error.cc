#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes&) {
  RequireFlat(inputs[0].shape);
  return {.outputs = {{.shape = {}}}};
}

void Gradient(GradientBuilder& g) {
  if (!g.Needs(0)) return;
  g.Set(0, g.Add("absolute_error_grad", {g.input()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kAbsoluteError = {.name = "absolute_error",
                                               .summary =
                                                   "loss of each sample: the sum over classes of "
                                                   "the absolute value of (output - one-hot "
                                                   "label); of a single output that of (output - "
                                                   "number)",
                                               .inputs = {"outputs"},
                                               .outputs = {"loss"},
                                               .infer = Infer,
                                               .gradient = Gradient};
extern constinit const OpDef kAbsoluteErrorGrad = {
    .name = "absolute_error_grad",
    .summary =
        "the sign of (output - one-hot label or number), or 0 where both are equal, / samples of "
        "the "
        "step",
    .inputs = {"outputs"},
    .outputs = {"dx"}};

}  // namespace trireme
