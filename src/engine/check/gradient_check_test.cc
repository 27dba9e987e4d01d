#include "engine/check/gradient_check.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/check/compare.h"
#include "engine/check/tries.h"
#include "engine/ref/engine.h"
#include "engine/ref/runner.h"
#include "graph/chains_test.h"
#include "graph/layout.h"
#include "graph/models/activations.h"
#include "graph/models/example_networks_test.h"
#include "graph/models/losses.h"
#include "graph/models/models.h"
#include "graph/op.h"
#include "graph/program.h"

namespace trireme::check {
namespace {

std::string_view FirstPart(const OpDef& op) {
  return op.parts.size() > 0 ? *op.parts.begin() : op.name;
}

// The operation between two layers with parameters, so that its own gradients and those that it
// passes on count. A fused one: its parts.
Graph Embed(const OpDef& op, const Attributes& attributes, Shape shape = {7, 6, 3}) {
  const std::string_view first = FirstPart(op);
  Builder build({shape.height, shape.width, 2});
  ValueId x = build.Add("conv2d", {0}, {.channels = shape.channels, .kernel = 1}, "before");
  std::vector<ValueId> inputs = {x};
  if (first == "dense" && !attributes.tokens) inputs = {build.Add("flatten", {x})};
  while (inputs.size() < FindOp(first).inputs.size()) {
    inputs.push_back(build.Add("conv2d", {0}, {.channels = shape.channels, .kernel = 1}, "other"));
  }
  ValueId y = build.Add(first, inputs, attributes, "tried");
  for (const char* part : std::span(op.parts).subspan(op.parts.size() ? 1 : 0)) {
    y = build.Add(part, {y}, GradientTriesFor(part)[0], part);
  }
  if (build.shape(y).height > 1) y = build.Add("flatten", {y});
  const ValueId logits = build.Add("dense", {y}, {.channels = 4}, "behind");
  return std::move(build).Finish("softmax_cross_entropy", logits);
}

// Losses end a graph, they do not stand inside; the models below hold all of them.
TEST(Gradient, OfEveryOperationAgreesWithDifferences) {
  std::set<std::string_view> losses;
  for (const LossKind& loss : LossKinds()) losses.insert(loss.op);
  std::vector<const OpDef*> tried(AllOps().begin(), AllOps().end());
  tried.insert(tried.end(), {&kConv2dBatchNormRelu, &kStem});
  for (const OpDef* op : tried) {
    if (!op->gradient || losses.contains(op->name)) continue;
    GradientOptions options{.coordinates = 30};
    if (op->parts.size() > 0) options.fusions = {{op}};
    for (const Attributes& attributes : GradientTriesFor(FirstPart(*op))) {
      // Queries, keys and values of both heads, and more tokens than a few.
      const bool attends = FirstPart(*op) == "attention";
      const Graph graph = Embed(*op, attributes, attends ? Shape{3, 4, 12} : Shape{7, 6, 3});
      EXPECT_TRUE(CheckGradient(graph, options)) << op->name;
      const auto program = Compile(graph, RefEngine(options.fusions), 1, Mode::kTrain, 1);
      EXPECT_TRUE(op->view || std::ranges::count(program->instructions, op, &Instruction::op));
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
    g.Set(0, g.Add("sigmoid_grad", {g.output(), g.d_output()}, {g.spec(g.input())})[0]);
  };
  Graph graph = Embed(FindOp("tanh"), {});
  graph.nodes[1].op = &wrong;
  EXPECT_FALSE(CheckGradient(graph));
}

TEST(Gradient, OfOneSampleAgreesWithDifferences) {
  EXPECT_TRUE(CheckGradient(Embed(FindOp("batch_norm"), {}), {.count = 1}));
  EXPECT_TRUE(CheckGradient(Embed(FindOp("layer_norm"), {}), {.count = 1}));
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

TEST(Gradient, OfANumberAgreesWithDifferences) {
  for (const char* loss : {"squared-error", "absolute-error"}) {
    const Graph graph = BuildModel({.name = "mlp:6-9-1", .loss = loss}, {1, 1, 6}, 1);
    EXPECT_TRUE(CheckGradient(graph, {.count = 5})) << loss;
  }
}

TEST(Gradient, OfWeightedClassesAgreesWithDifferences) {
  for (const LossKind& loss : LossKinds()) {
    const Graph graph = BuildModel({.name = "mlp:6-9-3", .loss = loss.name}, {1, 1, 6}, 3);
    EXPECT_TRUE(CheckGradient(graph, {.count = 5, .class_weights = {0.5f, 2, 1.25f}})) << loss.name;
  }
}

TEST(Gradient, OfMixedLabelsAgreesWithDifferences) {
  for (const LossKind& loss : LossKinds()) {
    for (const std::vector<float>& weights :
         {std::vector<float>(), std::vector<float>{0.5f, 2, 1.25f}}) {
      const Graph graph =
          BuildModel({.name = "mlp:6-9-3", .loss = loss.name, .smoothing = loss.smooths ? 0.1f : 0},
                     {1, 1, 6}, 3);
      EXPECT_TRUE(CheckGradient(graph, {.count = 5, .class_weights = weights, .mixed = true}))
          << loss.name;
    }
  }
}

// With the loss against one class and that against the other: a share of each.
TEST(Gradient, TheLossOfAMixIsThatOfBothByTheirShares) {
  for (const LossKind& loss : LossKinds()) {
    const Graph graph =
        BuildModel({.name = "mlp:6-9-3", .loss = loss.name, .smoothing = loss.smooths ? 0.1f : 0},
                   {1, 1, 6}, 3);
    const auto program = Compile(graph, RefEngine(), 1, Mode::kTrain, 1);
    const std::vector<double> state = Widen(InitialState(graph, program->layout, 3));
    const std::vector<float> inputs = RandomFloats(4, 6), weights = {0.5f, 2, 1.25f};
    const auto summand_of = [&](int32_t label, std::span<const LabelMix> mixes) {
      std::vector<double> summand(program->layout.summand);
      ref::Runner(*program).Run({.inputs = inputs,
                                 .labels = {&label, 1},
                                 .count = 1,
                                 .mixes = mixes,
                                 .class_weights = weights},
                                state, summand, false);
      summand.resize(program->layout.loss() + 1);  // gradients and loss
      return summand;
    };
    const LabelMix mix{.other = 2, .share = 0.25f};
    const std::vector<double> mixed = summand_of(1, {&mix, 1});
    const std::vector<double> first = summand_of(1, {}), second = summand_of(2, {});
    for (size_t i = 0; i < mixed.size(); ++i) {
      EXPECT_NEAR(mixed[i], 0.75 * first[i] + 0.25 * second[i], 1e-12) << loss.name << " " << i;
    }
  }
}

TEST(Gradient, OfATransformerAgreesWithDifferences) {
  const Graph graph = BuildModel({.name = "text", .layers = kSmallTransformer}, {4, 6, 3}, 3);
  EXPECT_TRUE(CheckGradient(graph, {.count = 4, .coordinates = 5}));
}

TEST(Gradient, OfTheCnnAgreesWithDifferences) {
  for (const char* norm : {"batch", "none"}) {
    const Graph graph = BuildModel({.name = "cnn", .norm = norm, .dropout = 0.2}, {8, 8, 1}, 3);
    EXPECT_TRUE(CheckGradient(graph, {.coordinates = 3})) << norm;
  }
}

// Behind layers that are frozen, whose batch-norm and dropout compute as in evaluation.
TEST(Gradient, BehindFrozenLayersAgreesWithDifferences) {
  const Graph cnn = BuildModel({.name = "cnn", .dropout = 0.2}, {8, 8, 1}, 3);
  std::vector<std::string> layers;
  for (const Node& node : cnn.nodes) {
    if (!node.parameters.empty()) layers.push_back(node.name);
  }
  layers.pop_back();
  for (const std::string& layer : layers) {
    const Graph graph =
        BuildModel({.name = "cnn", .dropout = 0.2, .freeze = "up to " + layer}, {8, 8, 1}, 3);
    EXPECT_TRUE(CheckGradient(graph, {.coordinates = 2})) << layer;
  }
}

}  // namespace
}  // namespace trireme::check
