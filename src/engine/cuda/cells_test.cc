// Needs no card.
#include "engine/cuda/cells.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/cuda/node_choice.h"
#include "graph/op.h"
#include "graph/paper_engine_test.h"
#include "graph/program.h"

namespace trireme::cuda {
namespace {

class CellsOnPaper : public PaperEngine {
 public:
  CellsOnPaper()
      : PaperEngine({{&FindOp("batch_norm_relu")},
                     {&FindOp("batch_norm_relu_max_pool")},
                     {&FindOp("max_pool_batch_norm_relu_grad")}}) {}
  std::string Choose(Graph& graph) const override { return MakeCells(graph, Element::kBFloat); }
};

struct Stem {
  int size = 64, kernel = 7, pool = 3;
  bool read_twice = false;
};

int MarkedIn(const Stem& stem) {
  Builder build({stem.size, stem.size, 3});
  const int half = stem.kernel / 2;
  const ValueId y = build.Add(
      "conv2d", {0}, {.channels = 16, .kernel = stem.kernel, .stride = 2, .padding = half}, "conv");
  ValueId x = build.Add("relu", {build.Add("batch_norm", {y}, {}, "bn")});
  x = build.Add("max_pool", {x}, {.kernel = stem.pool, .stride = 2, .padding = stem.pool / 2});
  x = build.Add("global_average_pool", {x});
  if (stem.read_twice) x = build.Add("add", {x, build.Add("global_average_pool", {y})});
  x = build.Add("dense", {x}, {.channels = 3}, "fc");
  const Graph graph = std::move(build).Finish("softmax_cross_entropy", x);
  const auto program = Compile(graph, CellsOnPaper(), 2, Mode::kTrain, 1 << 20);
  ValueId kept = 0;  // the folded images
  for (const Instruction& i : program->instructions) {
    if (i.attributes.choice != kInCells) continue;
    if (i.op->name == std::string_view("conv2d")) kept = i.outputs.at(1).value;
    if (i.op->name != std::string_view("conv2d_grad_weights")) continue;
    EXPECT_EQ(i.inputs.at(2).value, kept);
    EXPECT_EQ(i.inputs[2].spec.element, Element::kBFloat);
  }
  return int(std::ranges::count_if(
      program->instructions, [](const Instruction& i) { return i.attributes.choice == kInCells; }));
}

// The convolution, its gradient, and what is between them, forward and backward.
TEST(CellsTest, FourOperationsShareThem) {
  EXPECT_EQ(MarkedIn({}), 4);
  EXPECT_EQ(MarkedIn({.kernel = 3}), 4);
}

TEST(CellsTest, NothingIsMarkedThatDoesNotFit) {
  EXPECT_EQ(MarkedIn({.size = 66}), 0);  // 33 results in a row
  EXPECT_EQ(MarkedIn({.pool = 2}), 0);
  EXPECT_EQ(MarkedIn({.read_twice = true}), 0);
}

}  // namespace
}  // namespace trireme::cuda
