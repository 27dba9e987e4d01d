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
  g.Set(0, g.Add("squared_error_grad", {g.input()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kSquaredError = {
    .name = "squared_error",
    .summary =
        "loss of each sample: half the sum over classes of (output - one-hot label)^2; of a "
        "single output half of (output - number)^2",
    .inputs = {"outputs"},
    .outputs = {"loss"},
    .infer = Infer,
    .gradient = Gradient};
extern constinit const OpDef kSquaredErrorGrad = {
    .name = "squared_error_grad",
    .summary = "(output - one-hot label or number) / samples of the step",
    .inputs = {"outputs"},
    .outputs = {"dx"}};

}  // namespace trireme
