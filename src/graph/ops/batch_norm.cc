#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature InferInference(std::span<const ValueSpec> inputs, const Attributes&) {
  const int64_t channels = inputs[0].shape.channels;
  return {.outputs = {inputs[0]},
          .parameters = {{.name = "weight", .shape = {channels}, .initial = Initial::kOne},
                         {.name = "bias", .shape = {channels}}},
          .statistics = {{.name = "running_mean", .shape = {channels}},
                         {.name = "running_var", .shape = {channels}, .initial = Initial::kOne}}};
}

Signature Infer(std::span<const ValueSpec> inputs, const Attributes& attributes) {
  Signature signature = InferInference(inputs, attributes);
  const ValueSpec per_channel{.shape = {.channels = inputs[0].shape.channels}, .per_sample = false};
  signature.outputs.insert(signature.outputs.end(), {per_channel, per_channel});
  return signature;
}

void Gradient(GradientBuilder& g) {
  const ValueId dx = g.Add("batch_norm_grad", {g.input(), g.output(1), g.output(2), g.d_output()},
                           {g.spec(g.input())})[0];
  if (g.Needs(0)) g.Set(0, dx);
}

// What relu lets pass is where the normalised x is positive: it is found again from x, so that y,
// of which the next layer's gradient is done by then, is not read once more.
void ReluGradient(GradientBuilder& g) {
  const ValueId dx =
      g.Add("batch_norm_relu_grad", {g.input(), g.output(1), g.output(2), g.d_output()},
            {g.spec(g.input())})[0];
  if (g.Needs(0)) g.Set(0, dx);
}

}  // namespace

extern constinit const OpDef kBatchNorm = {
    .name = "batch_norm",
    .summary =
        "normalizes each channel to mean 0 and variance 1 over the shard, then scales and shifts",
    .outputs = {"y", "mean", "inv_std"},
    .infer = Infer,
    .gradient = Gradient,
    .evaluate_as = "batch_norm_inference"};
extern constinit const OpDef kBatchNormInference = {
    .name = "batch_norm_inference",
    .summary = "the same with the running statistics",
    .infer = InferInference};
extern constinit const OpDef kBatchNormGrad = {
    .name = "batch_norm_grad",
    .summary = "gradients of the input, the scale and the shift",
    .inputs = {"x", "mean", "inv_std", "dy"},
    .outputs = {"dx"},
    .in_place = 0b1000,
    .writes_gradients = true};
extern constinit const OpDef kBatchNormRelu = {.name = "batch_norm_relu",
                                               .summary = "batch_norm, then relu",
                                               .outputs = {"y", "mean", "inv_std"},
                                               .gradient = ReluGradient,
                                               .parts = {"batch_norm", "relu"}};
extern constinit const OpDef kBatchNormReluGrad = {.name = "batch_norm_relu_grad",
                                                   .summary = "the same through the relu after it",
                                                   .inputs = {"x", "mean", "inv_std", "dy"},
                                                   .outputs = {"dx"},
                                                   .in_place = 0b1000,
                                                   .writes_gradients = true};
extern constinit const OpDef kBatchNormAdd = {.name = "batch_norm_add",
                                              .summary = "batch_norm, then add",
                                              .inputs = {"x", "residual"},
                                              .outputs = {"y", "mean", "inv_std"},
                                              .parts = {"batch_norm", "add"}};
extern constinit const OpDef kBatchNormAddRelu = {.name = "batch_norm_add_relu",
                                                  .summary = "batch_norm, then add, then relu",
                                                  .inputs = {"x", "residual"},
                                                  .outputs = {"y", "mean", "inv_std"},
                                                  .parts = {"batch_norm", "add", "relu"}};

// The end of a stem: what is between them is read by nobody else.
extern constinit const OpDef kBatchNormReluMaxPool = {.name = "batch_norm_relu_max_pool",
                                                      .summary = "batch_norm_relu, then max_pool",
                                                      .outputs = {"y", "index", "mean", "inv_std"},
                                                      .parts = {"batch_norm_relu", "max_pool"}};
extern constinit const OpDef kMaxPoolBatchNormReluGrad = {
    .name = "max_pool_batch_norm_relu_grad",
    .summary = "max_pool_grad, then batch_norm_relu_grad",
    .inputs = {"index", "dy", "x", "mean", "inv_std"},
    .outputs = {"dx"},
    .parts = {"max_pool_grad", "batch_norm_relu_grad"}};

// Where a block of a residual network ends: what is added there is read by both ways back.
extern constinit const OpDef kAddReluBatchNormGrad = {
    .name = "add_relu_batch_norm_grad",
    .summary = "add_relu_grad, then batch_norm_grad; the first one's result is one, too",
    .inputs = {"a", "b", "y", "x", "mean", "inv_std"},
    .outputs = {"dx", "dsum"},
    .in_place = 0b11,
    .parts = {"add", "relu_grad", "batch_norm_grad"},
    .keeps = 1};

}  // namespace trireme
