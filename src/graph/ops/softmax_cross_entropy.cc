#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  RequireFlat(inputs[0].shape);
  if (!(attributes.smoothing >= 0 && attributes.smoothing <= 1)) {
    throw Error("label smoothing must be between 0 and 1, got {}", attributes.smoothing);
  }
  return {.outputs = {{.shape = {}}, inputs[0]}};
}

void Gradient(GradientBuilder& g) {
  if (!g.Needs(0)) return;
  g.Set(0, g.Add("softmax_cross_entropy_grad", {g.output(1)}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kSoftmaxCrossEntropy = {
    .name = "softmax_cross_entropy",
    .summary = "loss of each sample: -log of the label's probability (labels may be smoothed)",
    .inputs = {"logits"},
    .outputs = {"loss", "probabilities"},
    .infer = Infer,
    .gradient = Gradient};
extern constinit const OpDef kSoftmaxCrossEntropyGrad = {
    .name = "softmax_cross_entropy_grad",
    .summary = "(probabilities - target) / samples of the step",
    .inputs = {"probabilities"},
    .outputs = {"dlogits"}};

}  // namespace trireme
