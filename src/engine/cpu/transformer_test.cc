// Whole transformers, and how much memory they take.
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "engine/check/model_check.h"
#include "engine/cpu/bf16/plain_unit_test.h"
#include "engine/cpu/engine.h"
#include "flat/cpu/host.h"
#include "graph/models/example_networks_test.h"
#include "graph/models/models.h"
#include "graph/op.h"
#include "graph/program.h"

namespace trireme {
namespace {

TEST(CpuTransformerTest, AgreesWithRef) {
  HostDevice device;
  CpuEngine engine(device, 2);
  const Graph small = BuildModel({.name = "text", .layers = kSmallTransformer}, {20, 24, 3}, 5);
  EXPECT_TRUE(check::CheckModelAgainstRef(engine, small, 3, 5));
  const Graph vit = BuildModel({.name = "vit_ti", .stochastic_depth = 0.2}, {8, 8, 3}, 10);
  EXPECT_TRUE(check::CheckModelAgainstRef(engine, vit, 2, 3));
}

// All that passes between operations for tokens, and what they tell backward beside it.
TEST(CpuTransformerTest, Bf16HoldsTokensInTwoBytes) {
  HostDevice device;
  CpuEngine narrow(device, 2, "auto", &cpu::kPlainUnit), wide(device, 2);
  const Graph graph = BuildModel({.name = "vit_ti", .stochastic_depth = 0.2}, {8, 8, 3}, 10);
  const auto program = Compile(graph, narrow, 2, Mode::kTrain, 1 << 20);
  const int tokens = 5;
  size_t two_bytes = 0;
  for (const Instruction& instruction : program->instructions) {
    for (const Operand& output : instruction.outputs) {
      const Shape& shape = output.spec.shape;
      if (shape.height * shape.width != tokens || shape.channels < 192) continue;
      EXPECT_EQ(output.spec.element, Element::kBFloat)
          << instruction.op->name << " of " << instruction.name;
      ++two_bytes;
    }
  }
  EXPECT_GT(two_bytes, 200u);
  // Its gradients are those of float32 but for rounding, some hundred times in a row.
  const std::vector<float> got = check::SummandOf(narrow, graph, 2);
  const std::vector<float> want = check::SummandOf(wide, graph, 2);
  double off = 0, all = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    off += double(got[i] - want[i]) * double(got[i] - want[i]);
    all += double(want[i]) * double(want[i]);
  }
  EXPECT_LT(std::sqrt(off / all), 0.05);
}

struct Bytes {
  double values = 0, scratch = 0;
};

// Of one attention over `tokens` tokens, forward and backward.
Bytes BytesOf(int tokens) {
  Builder build({tokens, 1, 24});
  const ValueId qkv = build.Add("dense", {0}, {.channels = 96, .tokens = true}, "qkv");
  const ValueId y = build.Add("attention", {qkv}, {.heads = 2}, "attention");
  const ValueId mean = build.Add("global_average_pool", {y});
  const Graph graph = std::move(build).Finish("softmax_cross_entropy", mean);
  HostDevice device;
  CpuEngine engine(device, 1);
  const auto program = Compile(graph, engine, 1, Mode::kTrain, 1 << 20);
  return {double(program->activation_bytes), double(engine.ScratchBytes(*program))};
}

// One matrix of tokens by tokens would be 16 times as large, and 64 MiB.
TEST(CpuTransformerTest, MemoryGrowsWithTheTokensNotWithTheirSquare) {
  const Bytes few = BytesOf(1024), many = BytesOf(4096);
  EXPECT_LT(many.values, 4.5 * few.values);
  EXPECT_LT(many.scratch, 4.5 * few.scratch);
  EXPECT_GT(many.values, 3.5 * few.values);
  EXPECT_LT(many.values + many.scratch, 16e6);
}

}  // namespace
}  // namespace trireme
