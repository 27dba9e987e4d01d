// Needs no card.
#include "engine/cuda/gram_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/cuda/kernels.h"
#include "engine/cuda/masks.h"
#include "graph/models/models.h"
#include "graph/op.h"
#include "graph/paper_engine_test.h"
#include "graph/program.h"

namespace trireme::cuda {
namespace {

std::vector<Fusion> AllFusions() {
  std::vector<Fusion> all = GramFusions();
  for (const char* op : {"batch_norm_add_relu", "batch_norm_relu", "add_relu_batch_norm_grad",
                         "add_relu_grad", "batch_norm_add"}) {
    all.push_back({&FindOp(op)});
  }
  return all;
}

// Compiles as the engine does, in bf16.
class GramOnPaper : public PaperEngine {
 public:
  GramOnPaper() : PaperEngine(AllFusions()) {}
  std::string Choose(Graph& graph) const override {
    const std::string moments = KeepMoments(graph);
    return moments + MakeMasks(graph);
  }
  NarrowOperands NarrowOperandsOf(const Node& node) const override {
    return cuda::NarrowOperandsOf(node);
  }
};

std::shared_ptr<const Program> CompileFor(const Graph& graph, int capacity) {
  return Compile(graph, GramOnPaper(), capacity, Mode::kTrain, 1 << 20);
}

std::map<std::string_view, int> CountOps(const Program& program) {
  std::map<std::string_view, int> counts;
  for (const Instruction& i : program.instructions) ++counts[i.op->name];
  return counts;
}

int GramOpsIn(const Program& program) {
  return int(std::ranges::count_if(program.instructions,
                                   [](const Instruction& i) { return IsGramOp(i.op->name); }));
}

TEST(GramRulesTest, ExpandingConvolutionsOfAResNetAreNormalisedAsProducts) {
  const auto program = CompileFor(BuildModel({.name = "resnet50"}, {224, 224, 3}, 1000), 512);
  auto counts = CountOps(*program);
  EXPECT_EQ(counts["conv2d_batch_norm_add_relu"], 16);
  EXPECT_EQ(counts["conv2d_batch_norm"], 1);  // the first shortcut; others have a stride
  // Where there is a shortcut with a stride, its norm takes the sum of the gradients; the last
  // block's gradient comes one way only.
  EXPECT_EQ(counts["add_relu_conv2d_batch_norm_grad"], 12);
  EXPECT_EQ(counts["conv2d_batch_norm_grad"], 5);
  EXPECT_EQ(counts["add_relu_batch_norm_grad"], 3);
  EXPECT_EQ(counts["batch_norm_add_relu"], 0);
}

// What is kept of x is read by one gradient, results in bf16 are not, masks are.
TEST(GramRulesTest, BackwardReadsMomentsAndSigns) {
  const auto program = CompileFor(BuildModel({.name = "resnet50"}, {224, 224, 3}, 1000), 512);
  int kept = 0, read = 0, masks = 0;
  for (const Instruction& i : program->instructions) {
    const std::string_view op = i.op->name;
    if (op == "conv2d_batch_norm_add_relu") {
      // Its input's sums come from the batch_norm_relu before it.
      EXPECT_EQ(i.inputs.size(), 3u);
      EXPECT_FALSE(i.inputs.back().spec.per_sample);
      const Operand& moments = i.outputs.at(3);
      EXPECT_EQ(moments.spec.element, Element::kFloat);
      EXPECT_FALSE(moments.spec.per_sample);
      EXPECT_EQ(size_t(moments.spec.shape.size()),
                MomentsSize(i.inputs[0].spec.shape.channels, i.outputs[0].spec.shape.channels));
      EXPECT_EQ(i.inputs[0].spec.element, Element::kBFloat);
      EXPECT_EQ(i.inputs[1].spec.element, Element::kBFloat);
      EXPECT_EQ(i.outputs[0].spec.element, Element::kBFloat);
      ++kept;
      if (i.outputs.size() == 5) {
        EXPECT_EQ(i.outputs[4].spec.element, Element::kByte);
        EXPECT_EQ(8 * i.outputs[4].spec.shape.size(), i.outputs[0].spec.shape.size());
        ++masks;
      }
    }
    if (op == "add_relu_conv2d_batch_norm_grad") {
      ASSERT_EQ(i.inputs.size(), 7u);
      EXPECT_EQ(i.inputs[kSigns].spec.element, Element::kByte);
      for (const size_t k : {0, 1, 3}) EXPECT_EQ(i.inputs[k].spec.element, Element::kBFloat) << k;
      for (const Operand& made : i.outputs) EXPECT_EQ(made.spec.element, Element::kBFloat);
      ++read;
    }
    if (op == "conv2d_batch_norm_grad") {
      ASSERT_EQ(i.inputs.size(), 5u);
      ++read;
    }
  }
  EXPECT_EQ(kept, 16);
  EXPECT_EQ(read, 17);
  EXPECT_EQ(masks, 15);  // all blocks but the last
}

TEST(GramRulesTest, FewRowsArePlain) {
  const Graph graph = BuildModel({.name = "resnet50"}, {224, 224, 3}, 1000);
  EXPECT_EQ(GramOpsIn(*CompileFor(graph, 4)), 0);
  EXPECT_EQ(GramOpsIn(*CompileFor(BuildModel({.name = "resnet18"}, {224, 224, 3}, 1000), 256)), 0);
}

// Two blocks; `otherwise`: other names, the shortcut first, the other operand of the sum.
Graph Blocks(bool otherwise,
             const Attributes& last = {.channels = 256, .kernel = 1, .bias = false}) {
  Builder build({56, 56, 8});
  int number = 0;
  const auto norm = [&](ValueId x) {
    const std::string name = otherwise ? "z" : "norm";
    return build.Add("batch_norm", {x}, {}, name + std::to_string(number++));
  };
  const auto convolve = [&](ValueId x, const Attributes& attributes) {
    const std::string name = otherwise ? "layer" : "conv";
    return norm(build.Add("conv2d", {x}, attributes, name + std::to_string(number++)));
  };
  const Attributes wide = {.channels = 256, .kernel = 3, .padding = 1, .bias = false};
  const Attributes reduce = {.channels = 64, .kernel = 1, .bias = false};
  ValueId x = build.Add("relu", {convolve(0, wide)});
  for (int block = 0; block < 2; ++block) {
    ValueId shortcut = x;
    const bool convolves = last.stride > 1 || block == 0;
    Attributes across = wide;
    across.stride = last.stride;
    if (otherwise && convolves) shortcut = convolve(x, across);
    const ValueId y = convolve(build.Add("relu", {convolve(x, reduce)}), last);
    if (!otherwise && convolves) shortcut = convolve(x, across);
    const std::vector<ValueId> both =
        otherwise ? std::vector{shortcut, y} : std::vector{y, shortcut};
    x = build.Add("relu", {build.Add("add", both)});
  }
  x = build.Add("dense", {build.Add("global_average_pool", {x})}, {.channels = 3}, "fc");
  return std::move(build).Finish("softmax_cross_entropy", x);
}

TEST(GramRulesTest, ANetworkDescribedDifferentlyIsFusedInTheSameWay) {
  const auto one = CompileFor(Blocks(false), 64), other = CompileFor(Blocks(true), 64);
  for (const auto& program : {one, other}) {
    EXPECT_EQ(CountOps(*program)["conv2d_batch_norm_add_relu"], 2);
    EXPECT_EQ(GramOpsIn(*program), 4);
  }
}

TEST(GramRulesTest, OtherConvolutionsArePlain) {
  for (const Attributes& last :
       {Attributes{.channels = 256, .kernel = 1},  // a bias
        Attributes{.channels = 256, .kernel = 3, .padding = 1, .bias = false},
        Attributes{.channels = 256, .kernel = 1, .stride = 2, .bias = false}}) {
    EXPECT_EQ(GramOpsIn(*CompileFor(Blocks(false, last), 64)), 0);
  }
}

}  // namespace
}  // namespace trireme::cuda
