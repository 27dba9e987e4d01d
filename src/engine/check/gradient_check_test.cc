#include "engine/check/gradient_check.h"

#include <set>
#include <string>

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

struct Try {
  const char* op;
  Attributes attributes;
};

const Try kTries[] = {
    {"dense", {.channels = 5}},
    {"dense", {.channels = 5, .bias = false}},
    {"conv2d", {.channels = 5, .kernel = 3, .stride = 1, .padding = 1}},
    {"conv2d", {.channels = 4, .kernel = 3, .stride = 2, .padding = 1, .bias = false}},
    {"conv2d", {.channels = 2, .kernel = 4, .stride = 3, .padding = 0}},
    {"batch_norm", {}},
    {"batch_norm_relu", {}},
    {"layer_norm", {}},
    {"layer_norm", {.affine = false}},
    {"relu", {}},
    {"sigmoid", {}},
    {"tanh", {}},
    {"add", {}},
    {"max_pool", {.kernel = 3, .stride = 2, .padding = 1}},
    {"max_pool", {.kernel = 2, .stride = 2}},
    {"average_pool", {.kernel = 3, .stride = 2, .padding = 1}},
    {"average_pool", {.kernel = 2, .stride = 1}},
    {"global_average_pool", {}},
    {"flatten", {}},
    {"dropout", {.rate = 0.4f}},
};

TEST(Gradient, OfEveryOperationAgreesWithDifferences) {
  std::set<std::string> tried = {"softmax_cross_entropy", "squared_error"};  // below
  for (const Try& t : kTries) {
    EXPECT_TRUE(CheckGradient(Embed(t.op, t.attributes), {.coordinates = 30})) << t.op;
    tried.insert(t.op);
  }
  for (const OpDef* op : AllOps()) {
    EXPECT_EQ(tried.contains(op->name), op->gradient != nullptr) << op->name;
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
  for (const char* activation : {"relu", "sigmoid", "tanh"}) {
    for (const char* norm : {"none", "batch", "layer", "layer-plain"}) {
      for (const char* loss : {"cross-entropy", "squared-error"}) {
        for (const double dropout : {0.0, 0.3}) {
          const bool smooth = loss[0] == 'c';
          const Graph graph = BuildModel({.name = "mlp:12-9-8-4",
                                          .activation = activation,
                                          .norm = norm,
                                          .loss = loss,
                                          .dropout = dropout,
                                          .smoothing = smooth ? 0.1f : 0},
                                         {2, 3, 2}, 4);
          EXPECT_TRUE(CheckGradient(graph, {.count = 5}))
              << activation << " " << norm << " " << loss << " " << dropout;
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
