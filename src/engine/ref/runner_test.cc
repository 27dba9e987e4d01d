// Forward kernels on numbers worked out by hand; backward follows from them by differences
// (engine/check/gradient_check_test).
#include "engine/ref/runner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/ref/engine.h"
#include "graph/layout.h"
#include "graph/op.h"

namespace trireme::ref {
namespace {

// Runs one operation behind the input and gives its outputs.
struct Result {
  std::vector<std::vector<double>> outputs;
  std::vector<double> summand;
  Layout layout;
};

Result Apply(std::string_view op, Shape shape, const Attributes& attributes,
             const std::vector<float>& inputs, const std::vector<double>& parameters = {},
             std::vector<int32_t> labels = {}) {
  Builder build(shape);
  const ValueId y = build.Add(op, {0}, attributes, "tried");
  Program program;
  program.graph = std::move(build).Finish("squared_error", build.Add("flatten", {y}));
  program.layout = LayOut(program.graph);
  Instruction& i = program.instructions.emplace_back();
  const Node& node = program.graph.nodes[0];
  i.op = node.op, i.attributes = node.attributes;
  i.inputs = {{.value = 0, .spec = program.graph.values[0]}};
  for (ValueId v : node.outputs) i.outputs.push_back({v, program.graph.values[v]});
  i.parameters = program.layout.parameters, i.statistics = program.layout.statistics;

  std::vector<double> state(program.layout.state);
  size_t next = 0;
  for (const Range& range : i.parameters) {
    for (size_t k = 0; k < range.size; ++k) state[range.begin + k] = parameters.at(next++);
  }
  const int count = int(inputs.size() / size_t(shape.size()));
  labels.resize(size_t(count));
  Result result{.summand = std::vector<double>(program.layout.summand), .layout = program.layout};
  Runner runner(program);
  runner.Run({.inputs = inputs, .labels = labels, .count = count, .statistics_scale = 0.5f}, state,
             result.summand, false);
  for (ValueId v : node.outputs) result.outputs.push_back(runner.value(v));
  return result;
}

using Numbers = std::vector<double>;

void ExpectNear(const Numbers& got, const Numbers& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

TEST(RefKernel, DenseMultipliesRowsByTheWeights) {
  const auto r = Apply("dense", {1, 1, 2}, {.channels = 3}, {1, 2, 3, 4},
                       {1, 2, 3, 4, 5, 6, /*bias*/ 10, 20, 30});
  ExpectNear(r.outputs[0], {1 + 8 + 10, 2 + 10 + 20, 3 + 12 + 30, 3 + 16 + 10, 6 + 20 + 20, 63});
}

TEST(RefKernel, Conv2dCorrelatesWithZerosAround) {
  // 3x3 kernel 1..9 over the 2x2 image 1 2 / 3 4.
  const auto r =
      Apply("conv2d", {2, 2, 1}, {.channels = 1, .kernel = 3, .padding = 1, .bias = false},
            {1, 2, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  ExpectNear(r.outputs[0], {5 * 1 + 6 * 2 + 8 * 3 + 9 * 4, 4 * 1 + 5 * 2 + 7 * 3 + 8 * 4,
                            2 * 1 + 3 * 2 + 5 * 3 + 6 * 4, 1 * 1 + 2 * 2 + 4 * 3 + 5 * 4});
}

TEST(RefKernel, Conv2dWithAStrideSkipsPlaces) {
  const auto r = Apply("conv2d", {1, 3, 2}, {.channels = 1, .kernel = 1, .stride = 2},
                       {1, 2, 3, 4, 5, 6}, {10, 1, /*bias*/ 0.5});
  ExpectNear(r.outputs[0], {12.5, 56.5});
}

TEST(RefKernel, BatchNormLeavesUnbiasedStatisticsAndBiasedOutputs) {
  const auto r = Apply("batch_norm", {1, 1, 1}, {.epsilon = 0}, {1, 3, 5}, {2, 10});
  const double deviation = std::sqrt(8.0 / 3);
  ExpectNear(r.outputs[0], {10 - 4 / deviation, 10, 10 + 4 / deviation});
  ExpectNear(r.outputs[1], {3});
  ExpectNear(r.outputs[2], {1 / deviation});
  EXPECT_NEAR(r.summand[r.layout.statistics[0].begin], 0.5 * 3, 1e-9);  // scaled by 0.5
  EXPECT_NEAR(r.summand[r.layout.statistics[1].begin], 0.5 * 4, 1e-9);
}

TEST(RefKernel, LayerNormLooksAtOneSample) {
  const auto r = Apply("layer_norm", {1, 2, 1}, {.affine = false, .epsilon = 0}, {1, 3, 10, 30});
  ExpectNear(r.outputs[0], {-1, 1, -1, 1});
  ExpectNear(r.outputs[1], {2, 20});
  ExpectNear(r.outputs[2], {1, 0.1});
}

TEST(RefKernel, MaxPoolTakesTheFirstLargestAndNeverThePadding) {
  const auto r =
      Apply("max_pool", {2, 2, 1}, {.kernel = 2, .stride = 2, .padding = 1}, {-1, -2, -3, -4});
  ExpectNear(r.outputs[0], {-1, -2, -3, -4});
  ExpectNear(r.outputs[1], {3, 2, 1, 0});
  const auto tie = Apply("max_pool", {2, 2, 1}, {.kernel = 2}, {1, 7, 7, 7});
  ExpectNear(tie.outputs[1], {1});
}

TEST(RefKernel, AveragePoolCountsThePadding) {
  const auto r =
      Apply("average_pool", {2, 2, 1}, {.kernel = 2, .stride = 2, .padding = 1}, {4, 8, 12, 16});
  ExpectNear(r.outputs[0], {1, 2, 3, 4});
  const auto all = Apply("global_average_pool", {2, 1, 2}, {}, {1, 10, 3, 30});
  ExpectNear(all.outputs[0], {2, 20});
}

TEST(RefKernel, SoftmaxCrossEntropySmoothsLabels) {
  const float log3 = std::log(3.0f);
  const auto r = Apply("softmax_cross_entropy", {1, 1, 2}, {}, {0, log3}, {}, {1});
  ExpectNear(r.outputs[1], {0.25, 0.75});
  ExpectNear(r.outputs[0], {-std::log(0.75)});
  const auto smooth =
      Apply("softmax_cross_entropy", {1, 1, 2}, {.smoothing = 0.2f}, {0, log3}, {}, {1});
  ExpectNear(smooth.outputs[0], {-0.9 * std::log(0.75) - 0.1 * std::log(0.25)});
}

TEST(RefKernel, SquaredErrorIsHalfTheSum) {
  const auto r = Apply("squared_error", {1, 1, 3}, {}, {1, 2, 3}, {}, {1});
  ExpectNear(r.outputs[0], {(1 + 1 + 9) / 2.0});
}

TEST(RefKernel, AbsoluteErrorIsTheSum) {
  const auto r = Apply("absolute_error", {1, 1, 4}, {}, {1, 2, -3, 0}, {}, {1});
  ExpectNear(r.outputs[0], {1 + 1 + 3});
}

TEST(RefKernel, DropoutKeepsTheMeanAndRepeats) {
  const std::vector<float> ones(20000, 1.0f);
  const auto a = Apply("dropout", {1, 1, 100}, {.rate = 0.25f}, ones).outputs[0];
  double sum = 0;
  for (double x : a) {
    EXPECT_TRUE(x == 0 || std::fabs(x - 4 / 3.0) < 1e-12);
    sum += x;
  }
  EXPECT_NEAR(sum / 20000, 1, 0.02);
  EXPECT_EQ(a, Apply("dropout", {1, 1, 100}, {.rate = 0.25f}, ones).outputs[0]);
}

TEST(RefEngine, ComputesEveryOperationThatIsNotAView) {
  const RefEngine engine;
  for (const OpDef* op : AllOps()) EXPECT_EQ(engine.Computes(op->name), !op->view) << op->name;
}

}  // namespace
}  // namespace trireme::ref
