#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  const Shape& in = inputs[0].shape;
  if (attributes.stride < 1) throw Error("needs stride >= 1, got {}", attributes.stride);
  if (attributes.channels < in.channels) {
    throw Error("needs at least the {} channels of its input, got {}", in.channels,
                attributes.channels);
  }
  return {.outputs = {{.shape = {.height = (in.height - 1) / attributes.stride + 1,
                                 .width = (in.width - 1) / attributes.stride + 1,
                                 .channels = attributes.channels}}}};
}

void Gradient(GradientBuilder& g) {
  if (g.Needs(0)) g.Set(0, g.Add("pad_channels_grad", {g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kPadChannels = {
    .name = "pad_channels",
    .summary = "every stride-th pixel of x, with channels of zeros behind its own",
    .infer = Infer,
    .gradient = Gradient};
extern constinit const OpDef kPadChannelsGrad = {
    .name = "pad_channels_grad",
    .summary = "dy of the channels that x has, at the pixels that were taken; else 0",
    .inputs = {"dy"},
    .outputs = {"dx"}};

}  // namespace trireme
