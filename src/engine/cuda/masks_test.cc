// Needs no card.
#include "engine/cuda/masks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/cuda/kernels.h"
#include "graph/models/models.h"
#include "graph/op.h"
#include "graph/paper_engine_test.h"
#include "graph/program.h"

namespace trireme::cuda {
namespace {

// Compiles as the engine does, in bf16.
class MasksOnPaper : public PaperEngine {
 public:
  MasksOnPaper()
      : PaperEngine({{&FindOp("batch_norm_add_relu")},
                     {&FindOp("batch_norm_relu")},
                     {&FindOp("add_relu_batch_norm_grad")},
                     {&FindOp("add_relu_grad")}}) {}
  std::string Choose(Graph& graph) const override { return MakeMasks(graph); }
  NarrowOperands NarrowOperandsOf(const Node& node) const override {
    return cuda::NarrowOperandsOf(node);
  }
};

TEST(MasksTest, BackwardOfABlockReadsSignsOnly) {
  const Graph graph = BuildModel({.name = "resnet18"}, {64, 64, 3}, 10);
  const auto program = Compile(graph, MasksOnPaper(), 2, Mode::kTrain, 1 << 20);
  int masks = 0, readers = 0;
  for (const Instruction& i : program->instructions) {
    if (i.op->name == std::string_view("batch_norm_add_relu") && i.outputs.size() == 4) {
      ++masks;
      const ValueSpec y = i.outputs[0].spec, mask = i.outputs[3].spec;
      EXPECT_EQ(mask.element, Element::kByte);
      EXPECT_EQ(8 * mask.shape.size(), y.shape.size());
      EXPECT_EQ(y.element, Element::kBFloat);
    }
    if (i.op->name != std::string_view("add_relu_batch_norm_grad")) continue;
    ++readers;
    EXPECT_EQ(i.inputs[kSigns].spec.element, Element::kByte);
    for (const size_t k : {0, 1, 3}) EXPECT_EQ(i.inputs[k].spec.element, Element::kBFloat) << k;
    for (const Operand& made : i.outputs) EXPECT_EQ(made.spec.element, Element::kBFloat);
  }
  EXPECT_EQ(masks, 7);  // all blocks but the last, whose gradient comes one way only
  EXPECT_EQ(readers, masks);
}

// Two blocks that are added to what they read.
Graph Blocks(int channels) {
  Builder build({2, 2, channels});
  const auto convolve = [&](ValueId x, const char* name) {
    x = build.Add("conv2d", {x}, {.channels = channels, .kernel = 3, .padding = 1}, name);
    return build.Add("batch_norm", {x}, {}, std::string("bn") + name);
  };
  ValueId x = build.Add("relu", {convolve(0, "stem")});
  for (const char* name : {"one", "two"}) {
    x = build.Add("relu", {build.Add("add", {convolve(x, name), x})});
  }
  x = build.Add("dense", {build.Add("global_average_pool", {x})}, {.channels = 3}, "fc");
  return std::move(build).Finish("softmax_cross_entropy", x);
}

TEST(MasksTest, ChannelsThatFillNoByteHaveNone) {
  for (const int channels : {8, 12}) {
    const auto program = Compile(Blocks(channels), MasksOnPaper(), 2, Mode::kTrain, 1 << 20);
    const auto masked = std::ranges::count_if(program->instructions, [](const Instruction& i) {
      return i.op->name == std::string_view("batch_norm_add_relu") && i.outputs.size() > 3;
    });
    EXPECT_EQ(masked, channels == 8 ? 1 : 0);
  }
}

}  // namespace
}  // namespace trireme::cuda
