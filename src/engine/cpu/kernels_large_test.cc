// Large results, which are written past the caches, sums over many rows, which are made in parts,
// and many of Winograd's tiles: against engine/ref, and the bits of small ones.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/check/compare.h"
#include "engine/check/op_check.h"
#include "engine/cpu/op_runner_test.h"
#include "graph/op.h"
#include "hwy/aligned_allocator.h"

namespace trireme::cpu {
namespace {

// Results of 8 MB and more are written past the caches.
constexpr int64_t kLarge = int64_t{2} << 20;  // floats

TEST(KernelsLargeTest, BatchNormAgreesWithRef) {
  const CpuRunners runners = RunnersOnAllTargets(2);
  for (const char* op : {"batch_norm_add_relu", "batch_norm_grad", "batch_norm_relu_grad"}) {
    int tried = 0;
    for (check::OpCase c : check::CasesFor(FindOp(op))) {
      const Shape shape = c.graph.values[c.graph.nodes[c.node].outputs[0]].shape;
      if (shape.channels != 64 || c.count != 1) continue;
      c.count = c.capacity = int(kLarge / shape.size());
      const check::Judgement judgement(c);
      for (const auto& runner : runners) EXPECT_TRUE(judgement.Check(*runner)) << runner->text();
      ++tried;
    }
    EXPECT_GE(tried, 1) << op;
  }
}

// Sums of 7,000 rows and more.
void CheckManyRows(const CpuRunners& runners, Element held) {
  int tried = 0, tried_winograd = 0;
  for (check::OpCase c : check::CasesFor(FindOp("conv2d_grad_weights"))) {
    Node& node = c.graph.nodes[c.node];
    const Shape shape = c.graph.values[node.inputs[1]].shape;
    if (c.count != 1 || shape.channels > 16) continue;  // takes long
    c.count = c.capacity = 7000 / (shape.height * shape.width) + 1;
    const check::Judgement judgement(c, held);
    for (const auto& runner : runners) EXPECT_TRUE(judgement.Check(*runner)) << runner->text();
    ++tried;
    if (IsNarrow(held) || node.attributes.kernel != 3 || node.attributes.stride != 1) continue;
    for (const auto& [tile, tolerance] : {std::pair(2, 4e-6), std::pair(4, 2e-5)}) {
      node.attributes.choice = tile;
      for (const auto& runner : runners) {
        EXPECT_TRUE(judgement.Check(*runner, c, tolerance)) << runner->text() << ", tile " << tile;
      }
      ++tried_winograd;
    }
  }
  EXPECT_GE(tried, 3);
  EXPECT_GE(tried_winograd, IsNarrow(held) ? 0 : 2);
}

TEST(KernelsLargeTest, GradientsByWeightsOfManyRowsAgreeWithRef) {
  CheckManyRows(RunnersOnAllTargets(2), Element::kFloat);
  CheckManyRows(RunnersWith(UnitsAndPlain(), 2), Element::kBFloat);
}

// Of 128 channels to 256, where each frequency of some tiles and all kernels fits a cache.
TEST(KernelsLargeTest, WinogradOfManyTilesAgreesWithRef) {
  const CpuRunners runners = RunnersOnAllTargets(2);
  int tried = 0;
  for (const char* op : {"conv2d", "conv2d_grad_input"}) {
    for (check::OpCase c : check::CasesFor(FindOp(op))) {
      Node& node = c.graph.nodes[c.node];
      const Shape in = c.graph.values[node.inputs[0]].shape;
      const Shape out = c.graph.values[node.outputs[0]].shape;
      const int kernels = in.channels * out.channels;
      if (c.count != 3 || node.attributes.kernel != 3 || node.attributes.stride != 1) continue;
      if (kernels <= 128 * 128 || kernels > 256 * 256) continue;
      c.count = c.capacity = 70;  // a tile each, of 4x4
      const check::Judgement judgement(c);
      for (const auto& [tile, tolerance] : {std::pair(2, 4e-6), std::pair(4, 2e-5)}) {
        node.attributes.choice = tile;
        for (const auto& runner : runners) {
          EXPECT_TRUE(judgement.Check(*runner, c, tolerance))
              << runner->text() << ", tile " << tile;
        }
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 4);
}

// What a convolution makes of `count` samples that are all the same.
std::vector<float> Convolve(CpuRunner& runner, check::OpCase c, int count) {
  c.count = c.capacity = count;
  const auto program = check::MakeProgram(c, {c.node});
  const Operand &in = program->instructions[0].inputs[0],
                &out = program->instructions[0].outputs[0];
  const size_t floats = program->activation_bytes / sizeof(float);
  const auto activations = hwy::AllocateAligned<float>(floats);
  const size_t in_size = size_t(in.spec.shape.size()), out_size = size_t(out.spec.shape.size());
  const auto sample = check::RandomFloats(1, in_size);
  for (int i = 0; i < count; ++i) {
    std::ranges::copy(sample, activations.get() + in.offset / sizeof(float) + size_t(i) * in_size);
  }
  const auto state = check::RandomFloats(2, program->layout.state);
  std::vector<float> summand(program->layout.summand);
  const std::span<float> all(activations.get(), floats);
  runner.Run(program, {.count = count}, std::as_writable_bytes(all), state, summand, false);
  const float* from = activations.get() + out.offset / sizeof(float);
  return {from, from + size_t(count) * out_size};
}

void ExpectSameBitsOfConvolutions(CpuRunner& runner) {
  int tried = 0;
  for (const char* op : {"conv2d", "conv2d_grad_input"}) {
    for (check::OpCase c : check::CasesFor(FindOp(op))) {
      Node& node = c.graph.nodes[c.node];
      const Shape shape = c.graph.values[node.outputs[0]].shape;
      const int depth = c.graph.values[node.inputs[0]].shape.channels;
      if (shape.channels % 16 != 0 || depth > 40 || c.count != 1) continue;  // 64: takes long
      for (const int winograd : {0, 2, 4}) {
        if (winograd && (node.attributes.kernel != 3 || node.attributes.stride != 1)) continue;
        node.attributes.choice = winograd;
        const std::vector<float> one = Convolve(runner, c, 1);
        const std::vector<float> many = Convolve(runner, c, int(kLarge / shape.size()) + 1);
        size_t same = 0;
        for (size_t i = 0; i < many.size(); i += one.size()) {
          same += std::equal(one.begin(), one.end(), many.begin() + ptrdiff_t(i));
        }
        EXPECT_EQ(same, many.size() / one.size())
            << runner.text() << ": " << c.text << ", tile " << winograd;
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 5);
}

TEST(KernelsLargeTest, ConvolutionsHaveTheSameBits) {
  for (const auto& runner : RunnersOnAllTargets(2)) ExpectSameBitsOfConvolutions(*runner);
}

// Plain loops would take long.
TEST(KernelsLargeTest, ConvolutionsOnUnitsHaveTheSameBits) {
  for (const auto& runner : RunnersWith(UnitsHere(), 2)) ExpectSameBitsOfConvolutions(*runner);
}

}  // namespace
}  // namespace trireme::cpu
