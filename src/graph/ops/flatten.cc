#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes&) {
  return {.outputs = {{.shape = {.channels = int(inputs[0].shape.size())}}}};
}

void Gradient(GradientBuilder& g) {
  if (g.Needs(0)) g.Set(0, g.Add("unflatten", {g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kFlatten = {.name = "flatten",
                                         .summary = "the same values in one row (a view)",
                                         .infer = Infer,
                                         .gradient = Gradient,
                                         .view = true};
extern constinit const OpDef kUnflatten = {
    .name = "unflatten",
    .summary = "the same values in the original shape (a view)",
    .inputs = {"dy"},
    .outputs = {"dx"},
    .view = true};

}  // namespace trireme
