#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes&) {
  RequireFlat(inputs[0].shape);
  return {};
}

}  // namespace

extern constinit const OpDef kTally = {
    .name = "tally",
    .summary = "adds the losses and, of classes, the correct predictions to the end of the summand",
    .inputs = {"logits", "loss"},
    .outputs = {},
    .infer = Infer};

}  // namespace trireme
