#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  const Shape shape = inputs[0].shape;
  ValueSpec each{.shape = {}};  // one for each sample or token
  if (attributes.tokens) each.shape = {.height = shape.height, .width = shape.width};
  Signature signature{.outputs = {inputs[0], each, each}};
  if (attributes.affine) {
    const std::vector<int64_t> all =
        attributes.tokens || (shape.height == 1 && shape.width == 1)
            ? std::vector<int64_t>{shape.channels}
            : std::vector<int64_t>{shape.height, shape.width, shape.channels};
    signature.parameters = {{.name = "weight", .shape = all, .initial = Initial::kOne},
                            {.name = "bias", .shape = all}};
  }
  return signature;
}

void Gradient(GradientBuilder& g) {
  const ValueId dx = g.Add("layer_norm_grad", {g.input(), g.output(1), g.output(2), g.d_output()},
                           {g.spec(g.input())})[0];
  if (g.Needs(0)) g.Set(0, dx);
}

}  // namespace

extern constinit const OpDef kLayerNorm = {
    .name = "layer_norm",
    .summary =
        "normalizes each sample, or each token's channels, to mean 0 and variance 1, then "
        "scales and shifts if affine",
    .outputs = {"y", "mean", "inv_std"},
    .infer = Infer,
    .gradient = Gradient};
extern constinit const OpDef kLayerNormGrad = {
    .name = "layer_norm_grad",
    .summary = "gradients of the input and, if affine, of the scale and the shift",
    .inputs = {"x", "mean", "inv_std", "dy"},
    .outputs = {"dx"},
    .writes_gradients = true};

}  // namespace trireme
