#include "graph/models/layer_kinds.h"

#include <algorithm>

#include "graph/models/activations.h"

namespace trireme {
namespace {

constexpr double kMostChannels = 1 << 20, kLargestKernel = 1 << 10;

using A = Attributes;
constexpr LayerArgument kChannels{
    .key = "channels", .least = 1, .most = kMostChannels, .count = &A::channels, .required = true};
constexpr LayerArgument kKernel{
    .key = "kernel", .least = 1, .most = kLargestKernel, .count = &A::kernel, .required = true};
constexpr LayerArgument kStride{
    .key = "stride", .least = 1, .most = kLargestKernel, .count = &A::stride};
constexpr LayerArgument kPadding{
    .key = "padding", .least = 0, .most = kLargestKernel, .count = &A::padding};
constexpr LayerArgument kBias{.key = "bias", .least = 0, .most = 1, .flag = &A::bias};
constexpr LayerArgument kAffine{.key = "affine", .least = 0, .most = 1, .flag = &A::affine};
constexpr LayerArgument kTokens{.key = "tokens", .least = 0, .most = 1, .flag = &A::tokens};
constexpr LayerArgument kEpsilon{
    .key = "epsilon", .least = 1e-12, .most = 1, .number = &A::epsilon};
constexpr LayerArgument kHeads{
    .key = "heads", .least = 1, .most = kMostChannels, .count = &A::heads, .required = true};
constexpr LayerArgument kRate{
    .key = "rate", .least = 0, .most = 0.99, .number = &A::rate, .required = true};

std::vector<LayerKind> MakeKinds() {
  std::vector<LayerKind> kinds = {
      {.op = "dense", .arguments = {kChannels, kBias, kTokens}},
      {.op = "conv2d", .arguments = {kChannels, kKernel, kStride, kPadding, kBias}},
      {.op = "batch_norm", .arguments = {kEpsilon}},
      {.op = "layer_norm", .arguments = {kAffine, kEpsilon, kTokens}},
      {.op = "max_pool", .arguments = {kKernel, kStride, kPadding}, .strides_by_kernel = true},
      {.op = "average_pool", .arguments = {kKernel, kStride, kPadding}, .strides_by_kernel = true},
      {.op = "global_average_pool"},
      {.op = "flatten"},
      {.op = "pad_channels", .arguments = {kChannels, kStride}},
      {.op = "dropout", .arguments = {kRate}},
      {.op = "stochastic_depth", .arguments = {kRate}},
      {.op = "attention", .arguments = {kHeads}},
      {.op = "class_token"},
      {.op = "position_embedding"},
      {.op = "first_token"},
  };
  for (const ActivationKind& activation : ActivationKinds())
    kinds.push_back({.op = activation.name});
  return kinds;
}

}  // namespace

std::span<const LayerKind> LayerKinds() {
  static const std::vector<LayerKind> kinds = MakeKinds();
  return kinds;
}

const LayerKind* FindLayerKind(std::string_view op) {
  const auto kinds = LayerKinds();
  const auto kind = std::ranges::find(kinds, op, &LayerKind::op);
  return kind == kinds.end() ? nullptr : &*kind;
}

}  // namespace trireme
