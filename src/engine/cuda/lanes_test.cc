// Needs no card.
#include "engine/cuda/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "graph/models/models.h"
#include "graph/op.h"
#include "graph/paper_engine_test.h"

namespace trireme::cuda {
namespace {

class LanesOnPaper : public PaperEngine {
 public:
  int Lingers(const Graph& graph, const Node& node, int capacity) const override {
    return LingersAside(graph, node, capacity);
  }
};

std::shared_ptr<const Program> CompileFor(const std::string& model, const Shape& input,
                                          const Engine& engine = LanesOnPaper(), int capacity = 4) {
  return Compile(BuildModel({.name = model}, input, 10), engine, capacity, Mode::kTrain, 1 << 16);
}

// Bytes of activations that an instruction reads or writes.
std::vector<Range> BytesOf(const std::vector<Operand>& operands, int capacity) {
  std::vector<Range> ranges;
  for (const Operand& operand : operands) {
    if (operand.is_input) continue;
    ranges.push_back({operand.offset, size_t(operand.spec.bytes(capacity))});
  }
  return ranges;
}

bool Overlap(const std::vector<Range>& a, const std::vector<Range>& b) {
  return std::ranges::any_of(a, [&](const Range& x) {
    return std::ranges::any_of(b, [&](const Range& y) {
      return x.begin < y.begin + y.size && y.begin < x.begin + x.size;
    });
  });
}

// Whatever the streams' speeds, who shares memory runs in the program's order.
TEST(LanesTest, WhoSharesMemoryWaits) {
  for (const auto& [model, input] : {std::pair<std::string, Shape>("resnet18", {32, 32, 3}),
                                     {"resnet50", {32, 32, 3}},
                                     {"cnn", {28, 28, 1}},
                                     {"mlp:30-20-10", {1, 1, 30}}}) {
    for (const bool lingers : {false, true}) {
      const auto program =
          lingers ? CompileFor(model, input) : CompileFor(model, input, PaperEngine());
      const std::vector<Lane> lanes = PlanLanes(*program);
      const auto& all = program->instructions;
      ASSERT_EQ(lanes.size(), all.size());
      std::array<int, 2> known = {-1, -1};
      for (size_t i = 0; i < all.size(); ++i) {
        known[lanes[i].aside] = std::max(known[lanes[i].aside], lanes[i].after);
        if (lanes[i].after >= 0) {
          ASSERT_LT(lanes[i].after, int(i));
          EXPECT_NE(lanes[size_t(lanes[i].after)].aside, lanes[i].aside);
          EXPECT_TRUE(lanes[size_t(lanes[i].after)].awaited);
        }
        const auto reads = BytesOf(all[i].inputs, 4), writes = BytesOf(all[i].outputs, 4);
        for (size_t k = 0; k < i; ++k) {
          if (lanes[k].aside == lanes[i].aside || int(k) <= known[lanes[i].aside]) continue;
          const auto earlier_reads = BytesOf(all[k].inputs, 4),
                     earlier_writes = BytesOf(all[k].outputs, 4);
          EXPECT_FALSE(Overlap(writes, earlier_reads) || Overlap(writes, earlier_writes) ||
                       Overlap(reads, earlier_writes))
              << model << ": " << all[i].name << " does not wait for " << all[k].name;
        }
      }
    }
  }
}

TEST(LanesTest, GradientsOfWeightsAndTheTallyGoAside) {
  const auto program = CompileFor("resnet18", {32, 32, 3});
  const std::vector<Lane> lanes = PlanLanes(*program);
  int weights = 0, at_once = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const std::string_view op = program->instructions[i].op->name;
    const bool aside = op == "conv2d_grad_weights" || op == "dense_grad_weights" || op == "tally";
    EXPECT_EQ(lanes[i].aside, aside) << op;
    weights += aside;
    // What comes next need not wait, as its memory lingers.
    const auto next = std::span(lanes).subspan(i + 1, std::min<size_t>(4, lanes.size() - i - 1));
    at_once += aside && std::ranges::all_of(
                            next, [&](const Lane& l) { return l.aside || l.after < int(i); });
  }
  EXPECT_EQ(weights, 22);
  EXPECT_EQ(at_once, weights);
}

TEST(LanesTest, WhatFillsACardStaysInItsPlace) {
  const auto program = CompileFor("resnet18", {224, 224, 3}, LanesOnPaper(), 256);
  const std::vector<Lane> lanes = PlanLanes(*program);
  int large = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const Instruction& instruction = program->instructions[i];
    if (instruction.op->name != std::string_view("conv2d_grad_weights")) continue;
    if (instruction.attributes.kernel < 3) continue;
    EXPECT_FALSE(lanes[i].aside) << instruction.name;
    ++large;
  }
  EXPECT_EQ(large, 17);
}

}  // namespace
}  // namespace trireme::cuda
