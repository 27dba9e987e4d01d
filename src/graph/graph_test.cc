#include "graph/graph.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "base/error.h"
#include "graph/op.h"

namespace trireme {
namespace {

TEST(Shape, IsWrittenShortWhenFlat) {
  EXPECT_EQ(ToText(Shape{28, 28, 1}), "28x28x1");
  EXPECT_EQ(ToText(Shape{1, 1, 10}), "10");
}

TEST(Builder, NumbersValuesAndNamesParameters) {
  Builder build({8, 6, 3});
  ValueId x = build.Add("conv2d", {build.input()},
                        {.channels = 5, .kernel = 3, .stride = 2, .padding = 1}, "conv1");
  EXPECT_EQ(build.shape(x), (Shape{4, 3, 5}));
  x = build.Add("batch_norm", {x}, {}, "bn1");
  x = build.Add("flatten", {x});
  x = build.Add("dropout", {build.Add("dropout", {x}, {.rate = 0.5f})}, {.rate = 0.25f});
  x = build.Add("dense", {x}, {.channels = 7}, "fc");
  const Graph graph = std::move(build).Finish("softmax_cross_entropy", x, 0.1f);

  ASSERT_EQ(graph.parameters.size(), 6u);
  EXPECT_EQ(graph.parameters[0].name, "conv1.weight");
  EXPECT_EQ(graph.parameters[0].shape, (std::vector<int64_t>{3, 3, 3, 5}));
  EXPECT_EQ(graph.parameters[3].name, "bn1.bias");
  EXPECT_EQ(graph.parameters[4].shape, (std::vector<int64_t>{60, 7}));
  EXPECT_EQ(graph.parameters[4].flattened, (Shape{4, 3, 5}));  // seen through the dropouts
  EXPECT_EQ(graph.statistics[1].name, "bn1.running_var");
  EXPECT_EQ(graph.nodes[3].attributes.layer, 0);
  EXPECT_EQ(graph.nodes[4].attributes.layer, 1);
  EXPECT_EQ(graph.num_classes(), 7);
  EXPECT_EQ(graph.logits(), x);
  EXPECT_EQ(graph.loss().attributes.smoothing, 0.1f);
  for (const ParameterSpec& spec : graph.parameters) {
    EXPECT_EQ(spec.decays, spec.name == "conv1.weight" || spec.name == "fc.weight") << spec.name;
  }
}

TEST(Builder, SaysWhichLayerDoesNotFit) {
  Builder build({4, 4, 1});
  auto message = [&](auto add) {
    try {
      add();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(message([&] { build.Add("dense", {0}, {.channels = 3}, "fc"); }).find("fc"),
            std::string::npos);
  EXPECT_NE(message([&] { build.Add("max_pool", {0}, {.kernel = 5}, "p"); }).find("4x4x1"),
            std::string::npos);
  EXPECT_THROW(build.Add("conv2d", {0}, {.channels = 1, .kernel = 3, .padding = 3}), Error);
  EXPECT_THROW(build.Add("conv2d", {0}, {.channels = 0}), Error);
  EXPECT_THROW(build.Add("dropout", {0}, {.rate = 1}), Error);
  EXPECT_THROW(build.Add("max_pool", {0}, {.kernel = 17, .padding = 10}), Error);
  const ValueId small = build.Add("max_pool", {0}, {.kernel = 2});
  EXPECT_THROW(build.Add("add", {0, small}), Error);
  EXPECT_THROW(Builder({0, 1, 1}), Error);
}

// A fused operation has what is left of its parts' inputs and outputs (graph/passes/fuse.cc).
void CheckParts(const OpDef& op) {
  if (op.parts.size() == 0) return;
  size_t inputs = 1, outputs = 1;
  for (const char* name : op.parts) {
    const OpDef& part = FindOp(name);
    inputs += part.inputs.size() - 1;
    outputs = outputs - 1 + part.outputs.size();
  }
  if (op.keeps >= 0) ++outputs;
  EXPECT_LT(op.keeps, int(op.parts.size()) - 1) << op.name;
  EXPECT_EQ(op.inputs.size(), inputs) << op.name;
  EXPECT_EQ(op.outputs.size(), outputs) << op.name;
  EXPECT_FALSE(op.infer || op.writes_gradients) << op.name;
}

TEST(AllOps, AreNamedOnceAndTheirWordsLeadToOperations) {
  std::set<std::string> names;
  for (const OpDef* op : AllOps()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_EQ(&FindOp(op->name), op);
    CheckParts(*op);
    if (op->evaluate_as && *op->evaluate_as) FindOp(op->evaluate_as);
    EXPECT_LT(op->in_place, 1u << op->inputs.size()) << op->name;
    EXPECT_NE(OperationsPage().find("| `" + std::string(op->name) + "` |"), std::string::npos);
  }
}

TEST(OperationsPage, IsWhatTheDocumentationShows) {
  std::ifstream file(TRIREME_DOCS "/operations.md");
  const std::string shown((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(shown, OperationsPage());
}

TEST(GradientBuilder, NeedsNoGradientOfTheDataHoweverReshaped) {
  Builder build({2, 2, 3});
  ValueId x = build.Add("relu", {build.Add("flatten", {0})});
  x = build.Add("dense", {x}, {.channels = 4});
  x = build.Add("dense", {x}, {.channels = 4});
  Graph graph = std::move(build).Finish("squared_error", x);
  const std::vector<bool> needed = {false, false, false, true, true};
  for (size_t i = 0; i < needed.size(); ++i) {
    EXPECT_EQ(GradientBuilder(graph, graph.nodes[i], -1).Needs(0), needed[i]) << i;
  }
}

TEST(GradientBuilder, RulesAddBackwardNodesOfTheLayer) {
  Builder build({5, 5, 2});
  ValueId x = build.Add("conv2d", {0}, {.channels = 3, .kernel = 3}, "a");
  x = build.Add("conv2d", {x}, {.channels = 4, .kernel = 3}, "b");
  Graph graph = std::move(build).Finish("squared_error", build.Add("flatten", {x}));
  const Node conv = graph.nodes[1];
  graph.values.push_back(graph.values[x]);
  GradientBuilder rule(graph, conv, ValueId(graph.values.size() - 1));
  conv.op->gradient(rule);
  const Node &weights = graph.nodes[graph.nodes.size() - 2], &input = graph.nodes.back();
  EXPECT_STREQ(weights.op->name, "conv2d_grad_weights");
  EXPECT_STREQ(input.op->name, "conv2d_grad_input");
  EXPECT_EQ(input.name, "b");
  EXPECT_TRUE(input.backward && weights.backward);
  EXPECT_EQ(input.parameters, conv.parameters);
  EXPECT_EQ(rule.gradients.at(0), input.outputs[0]);
  EXPECT_EQ(graph.values[input.outputs[0]], graph.values[conv.inputs[0]]);
  EXPECT_EQ(graph.loss().op, &FindOp("squared_error"));  // backward nodes do not hide it
  for (const Node* node : {&conv, &weights, &input}) {
    EXPECT_EQ(CountWork(graph, *node).multiply_adds, 3 * 3 * 3 * 4) << node->op->name;
  }
}

}  // namespace
}  // namespace trireme
