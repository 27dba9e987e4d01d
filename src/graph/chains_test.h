#pragma once
#include "graph/op.h"

// For tests: chains that no engine has.

namespace trireme {

// conv2d and batch_norm_relu, given what the latter kept. Its gradient needs what conv2d made: that
// is computed again.
inline void RecomputeConv2d(GradientBuilder& g, ValueId mean, ValueId inv_std, ValueId dy) {
  constexpr int kConv2d = 0, kNorm = 1;
  const ValueSpec spec = g.spec(g.part(kConv2d).outputs[0]);
  const ValueId x = g.Add("conv2d", {g.input()}, {spec}, kConv2d)[0];
  const ValueId dx = g.Add("batch_norm_relu_grad", {x, mean, inv_std, dy}, {spec}, kNorm)[0];
  g.Add("conv2d_grad_weights", {g.input(), dx}, {}, kConv2d);
  if (!g.Needs(0)) return;
  g.Set(0, g.Add("conv2d_grad_input", {dx}, {g.spec(g.input())}, kConv2d)[0]);
}

// Parameters in two parts, shapes that change, outputs of a part inside.
inline constinit const OpDef kConv2dBatchNormRelu = {
    .name = "conv2d_batch_norm_relu",
    .summary = "",
    .outputs = {"y", "mean", "inv_std"},
    .gradient =
        [](GradientBuilder& g) { RecomputeConv2d(g, g.output(1), g.output(2), g.d_output()); },
    .parts = {"conv2d", "batch_norm", "relu"}};

// The same to the end of a stem: further outputs of two parts.
inline constinit const OpDef kStem = {
    .name = "conv2d_batch_norm_relu_max_pool",
    .summary = "",
    .outputs = {"y", "index", "mean", "inv_std"},
    .gradient =
        [](GradientBuilder& g) {
          const ValueSpec spec = g.spec(g.part(2).outputs[0]);
          const ValueId dy = g.Add("max_pool_grad", {g.output(1), g.d_output()}, {spec}, 3)[0];
          RecomputeConv2d(g, g.output(2), g.output(3), dy);
        },
    .parts = {"conv2d", "batch_norm", "relu", "max_pool"}};

// Two parts of backward that write gradients, the last without a result.
inline constinit const OpDef kNormAndWeightsGrad = {
    .name = "batch_norm_relu_grad_conv2d_grad_weights",
    .summary = "",
    .inputs = {"x", "mean", "inv_std", "dy", "input"},
    .outputs = {},
    .parts = {"batch_norm_relu_grad", "conv2d_grad_weights"}};

// A gradient as one operation: two outputs, and the parameters of all parts.
inline constinit const OpDef kFoldGrad = {.name = "fold_grad",
                                          .summary = "",
                                          .inputs = {"x", "y", "mean", "inv_std", "dy"},
                                          .outputs = {"dx", "d_residual"},
                                          .writes_gradients = true};

inline void GradientOfFold(GradientBuilder& g) {
  const auto gradients =
      g.Add(kFoldGrad, {g.input(), g.output(), g.output(1), g.output(2), g.d_output()},
            {g.spec(g.input(0)), g.spec(g.input(1))});
  for (const int i : {0, 1}) g.Set(i, gradients[size_t(i)]);
}

inline constinit const OpDef kFold = {.name = "fold",
                                      .summary = "",
                                      .inputs = {"x", "residual"},
                                      .outputs = {"y", "mean", "inv_std"},
                                      .gradient = GradientOfFold,
                                      .parts = {"conv2d", "batch_norm", "add", "relu"}};

}  // namespace trireme
