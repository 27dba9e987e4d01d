// Every operation on every instruction set of this machine against engine/ref; and the same bits
// for any number of threads.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/check/compare.h"
#include "engine/check/op_check.h"
#include "engine/cpu/bf16/units_here.h"
#include "engine/cpu/call_list.h"
#include "engine/cpu/targets.h"
#include "graph/op.h"
#include "hwy/aligned_allocator.h"

namespace trireme::cpu {
namespace {

class CpuRunner : public check::OpRunner {
 public:
  CpuRunner(int64_t target, int threads, const MatrixUnit* unit = nullptr) : team_(threads) {
    OnlyTarget only(target);
    kernels_ = ChooseKernels();
    kernels_.unit = unit;
  }

  void Run(std::shared_ptr<const Program> program, const Batch& batch,
           std::span<std::byte> activations, std::span<const float> state, std::span<float> summand,
           bool accumulate) override {
    const size_t floats = CallList::ScratchFloats(*program, kernels_, team_.size());
    const auto scratch = hwy::AllocateAligned<float>(floats + 16);
    // What a kernel does not write it must not read.
    std::fill_n(scratch.get(), floats, std::numeric_limits<float>::quiet_NaN());
    CallList calls(*program, kernels_, team_, activations.data(), scratch.get());
    calls.Run(batch, state.data(), summand.data(), accumulate, 0, calls.size());
  }

  const KernelTable& kernels() const { return kernels_; }

 private:
  Team team_;
  KernelTable kernels_;
};

class KernelsTest : public testing::TestWithParam<int64_t> {};

TEST_P(KernelsTest, TableHasEveryOperationOnce) {
  const CpuRunner runner(GetParam(), 1);
  EXPECT_EQ(runner.kernels().target, hwy::TargetName(GetParam()));
  size_t operations = 0;
  for (const OpDef* op : AllOps()) {
    if (op->view) continue;
    ++operations;
    EXPECT_TRUE(runner.kernels().Find(op->name)) << op->name;
  }
  EXPECT_EQ(runner.kernels().rows.size(), operations);
}

TEST_P(KernelsTest, EveryOperationAgreesWithRef) {
  CpuRunner runner(GetParam(), 1);
  for (const OpDef* op : AllOps()) {
    if (op->view) continue;
    for (const check::OpCase& c : check::CasesFor(*op)) {
      EXPECT_TRUE(check::CheckAgainstRef(runner, c)) << c.text;
    }
  }
}

// The case with every choice of operands that the kernel takes in bf16.
std::vector<check::OpCase> NarrowCases(const check::OpCase& c, const NarrowOperands& narrow) {
  std::vector<ValueId> values;
  const Node& node = c.graph.nodes[c.node];
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (narrow.inputs >> i & 1) values.push_back(node.inputs[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (narrow.outputs >> i & 1) values.push_back(node.outputs[i]);
  }
  std::vector<check::OpCase> cases;
  const unsigned all = (1u << values.size()) - 1;
  for (unsigned chosen = narrow.alike ? all : 1; chosen && chosen <= all; ++chosen) {
    check::OpCase& choice = cases.emplace_back(c);
    for (size_t i = 0; i < values.size(); ++i) {
      if (chosen >> i & 1) choice.graph.values[values[i]].element = Element::kBFloat;
    }
    choice.text += fmt::format(", bf16 {:b}", chosen);
  }
  return cases;
}

TEST_P(KernelsTest, OperationsOnBFloatsAgreeWithRef) {
  CpuRunner runner(GetParam(), 1);
  int tried = 0;
  for (const KernelRow& row : runner.kernels().rows) {
    if (row.op.starts_with("conv2d")) continue;  // needs a unit
    for (const check::OpCase& c : check::CasesFor(FindOp(row.op))) {
      for (const check::OpCase& choice : NarrowCases(c, row.narrow)) {
        EXPECT_TRUE(check::CheckAgainstRef(runner, choice, 1e-5, /*short_numbers=*/true))
            << choice.text;
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 400);
}

// The same with 2x2 and 4x4 outputs at a time, which round more.
TEST_P(KernelsTest, WinogradAgreesWithRef) {
  CpuRunner runner(GetParam(), 2);
  int tried = 0;
  for (const char* op : {"conv2d", "conv2d_relu", "conv2d_grad_input", "conv2d_grad_weights"}) {
    for (check::OpCase c : check::CasesFor(FindOp(op))) {
      Attributes& a = c.graph.nodes[c.node].attributes;
      if (a.kernel != 3 || a.stride != 1 || c.count < 3) continue;
      for (const auto& [tile, tolerance] : {std::pair(2, 4e-6), std::pair(4, 2e-5)}) {
        a.winograd = tile;
        EXPECT_TRUE(check::CheckAgainstRef(runner, c, tolerance)) << c.text << ", tile " << tile;
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 40);
}

// Products in bf16: exact operands give what float32 gives, others differ by their rounding (2^-8
// of each).
class BFloatKernelsTest : public testing::TestWithParam<const MatrixUnit*> {};

TEST_P(BFloatKernelsTest, ProductsAgreeWithRef) {
  CpuRunner runner(AllTargets().front(), 2, GetParam());
  for (const OpDef* op : AllOps()) {
    const std::string_view name = op->name;
    if (!name.starts_with("conv2d") && !name.starts_with("dense")) continue;
    for (const check::OpCase& c : check::CasesFor(*op)) {
      EXPECT_TRUE(check::CheckAgainstRef(runner, c, 1e-5, /*short_numbers=*/true)) << c.text;
      if (c.count != 1) continue;
      EXPECT_TRUE(check::CheckAgainstRef(runner, c, 1e-2)) << c.text;
    }
  }
}

TEST_P(BFloatKernelsTest, ConvolutionsOfBFloatsAgreeWithRef) {
  CpuRunner runner(AllTargets().front(), 1, GetParam());
  int tried = 0;
  for (const char* op : {"conv2d", "conv2d_relu", "conv2d_grad_input", "conv2d_grad_weights"}) {
    for (const check::OpCase& c : check::CasesFor(FindOp(op))) {
      if (c.count != 3) continue;  // other counts: as with floats
      for (const check::OpCase& choice : NarrowCases(c, runner.kernels().Find(op)->narrow)) {
        EXPECT_TRUE(check::CheckAgainstRef(runner, choice, 1e-5, /*short_numbers=*/true))
            << choice.text;
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 100);
}

// Results of 8 MB and more are written past the caches.
constexpr int64_t kLarge = int64_t{2} << 20;  // floats

TEST_P(KernelsTest, LargeResultsOfBatchNormAgreeWithRef) {
  CpuRunner runner(GetParam(), 2);
  for (const char* op : {"batch_norm_add_relu", "batch_norm_grad"}) {
    int tried = 0;
    for (check::OpCase c : check::CasesFor(FindOp(op))) {
      const Shape shape = c.graph.values[c.graph.nodes[c.node].outputs[0]].shape;
      if (shape.channels != 64 || c.count != 1) continue;
      c.count = c.capacity = int(kLarge / shape.size());
      EXPECT_TRUE(check::CheckAgainstRef(runner, c)) << c.text;
      ++tried;
    }
    EXPECT_GE(tried, 1) << op;
  }
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

void ExpectSameBitsOfLargeResults(CpuRunner& runner) {
  int tried = 0;
  for (const char* op : {"conv2d", "conv2d_grad_input"}) {
    for (check::OpCase c : check::CasesFor(FindOp(op))) {
      Node& node = c.graph.nodes[c.node];
      const Shape shape = c.graph.values[node.outputs[0]].shape;
      const int depth = c.graph.values[node.inputs[0]].shape.channels;
      if (shape.channels % 16 != 0 || depth > 40 || c.count != 1) continue;  // 64: takes long
      for (const int winograd : {0, 2, 4}) {
        if (winograd && (node.attributes.kernel != 3 || node.attributes.stride != 1)) continue;
        node.attributes.winograd = winograd;
        const std::vector<float> one = Convolve(runner, c, 1);
        const std::vector<float> many = Convolve(runner, c, int(kLarge / shape.size()) + 1);
        size_t same = 0;
        for (size_t i = 0; i < many.size(); i += one.size()) {
          same += std::equal(one.begin(), one.end(), many.begin() + ptrdiff_t(i));
        }
        EXPECT_EQ(same, many.size() / one.size()) << c.text << ", tile " << winograd;
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 5);
}

TEST_P(KernelsTest, LargeResultsOfConvolutionsHaveTheSameBits) {
  CpuRunner runner(GetParam(), 2);
  ExpectSameBitsOfLargeResults(runner);
}

TEST_P(BFloatKernelsTest, LargeResultsOfConvolutionsHaveTheSameBits) {
  CpuRunner runner(AllTargets().front(), 2, GetParam());
  ExpectSameBitsOfLargeResults(runner);
}

INSTANTIATE_TEST_SUITE_P(All, KernelsTest, testing::ValuesIn(AllTargets()), TargetText);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BFloatKernelsTest);
INSTANTIATE_TEST_SUITE_P(All, BFloatKernelsTest, testing::ValuesIn(UnitsHere()), UnitText);

}  // namespace
}  // namespace trireme::cpu
