#include "engine/check/gradient_check.h"

#include <set>
#include <string_view>

#include "engine/check/tries.h"
#include "graph/models/activations.h"
#include "graph/models/losses.h"
#include "graph/models/models.h"
#include "graph/op.h"

namespace trireme::check {
namespace {

// The operation between two layers with parameters, so that its own gradients and those that it
// passes on count.
Graph Embed(std::string_view op, const Attributes& attributes, Shape shape = {7, 6, 3}) {
  Builder build({shape.height, shape.width, 2});
  ValueId x = build.Add("conv2d", {0}, {.channels = shape.channels, .kernel = 1}, "before");
  const OpDef& def = FindOp(op);
  std::vector<ValueId> inputs = {x};
  if (op == "dense") inputs = {build.Add("flatten", {x})};
  while (inputs.size() < def.inputs.size()) {
    inputs.push_back(build.Add("conv2d", {0}, {.channels = shape.channels, .kernel = 1}, "other"));
  }
  ValueId y = build.Add(op, inputs, attributes, "tried");
  if (op != "flatten" && op != "dense") y = build.Add("flatten", {y});
  const ValueId logits = build.Add("dense", {y}, {.channels = 4}, "behind");
  return std::move(build).Finish("softmax_cross_entropy", logits);
}

// Losses end a graph, they do not stand inside; the models below hold all of them.
TEST(Gradient, OfEveryOperationAgreesWithDifferences) {
  std::set<std::string_view> losses;
  for (const LossKind& loss : LossKinds()) losses.insert(loss.op);
  for (const OpDef* op : AllOps()) {
    if (!op->gradient || losses.contains(op->name)) continue;
    for (const Attributes& attributes : GradientTriesFor(op->name)) {
      EXPECT_TRUE(CheckGradient(Embed(op->name, attributes), {.coordinates = 30})) << op->name;
    }
  }
}

TEST(Gradient, AddsUpWhereAValueIsReadTwice) {
  Builder build({1, 1, 3});
  const ValueId x = build.Add("dense", {0}, {.channels = 4}, "before");
  const ValueId twice = build.Add("add", {x, x});
  const ValueId sum = build.Add("add", {build.Add("tanh", {x}), twice});
  EXPECT_TRUE(CheckGradient(std::move(build).Finish("squared_error", sum)));
}

TEST(Gradient, FindsAWrongRule) {
  OpDef wrong = FindOp("tanh");
  wrong.gradient = [](GradientBuilder& g) {
    g.Set(0, g.Add("sigmoid_grad", {g.output(), g.d_output()}, {g.spec(g.input())}));
  };
  Graph graph = Embed("tanh", {});
  graph.nodes[1].op = &wrong;
  EXPECT_FALSE(CheckGradient(graph));
}

TEST(Gradient, OfOneSampleAgreesWithDifferences) {
  EXPECT_TRUE(CheckGradient(Embed("batch_norm", {}), {.count = 1}));
  EXPECT_TRUE(CheckGradient(Embed("layer_norm", {}), {.count = 1}));
}

TEST(Gradient, OfEveryMlpAgreesWithDifferences) {
  for (const ActivationKind& activation : ActivationKinds()) {
    for (const char* norm : {"none", "batch", "layer", "layer-plain"}) {
      for (const LossKind& loss : LossKinds()) {
        for (const double dropout : {0.0, 0.3}) {
          const Graph graph = BuildModel({.name = "mlp:12-9-8-4",
                                          .activation = activation.name,
                                          .norm = norm,
                                          .loss = loss.name,
                                          .dropout = dropout,
                                          .smoothing = loss.smooths ? 0.1f : 0},
                                         {2, 3, 2}, 4);
          EXPECT_TRUE(CheckGradient(graph, {.count = 5}))
              << activation.name << " " << norm << " " << loss.name << " " << dropout;
        }
      }
    }
  }
}

TEST(Gradient, OfTheCnnAgreesWithDifferences) {
  for (const char* norm : {"batch", "none"}) {
    const Graph graph = BuildModel({.name = "cnn", .norm = norm, .dropout = 0.2}, {8, 8, 1}, 3);
    EXPECT_TRUE(CheckGradient(graph, {.coordinates = 3})) << norm;
  }
}

}  // namespace
}  // namespace trireme::check
