// Every operation on every instruction set of this machine against engine/ref; and the same bits
// for any number of threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/check/compare.h"
#include "engine/check/op_check.h"
#include "engine/cpu/call_list.h"
#include "engine/cpu/targets.h"
#include "graph/op.h"
#include "hwy/aligned_allocator.h"

namespace trireme::cpu {
namespace {

class CpuRunner : public check::OpRunner {
 public:
  CpuRunner(int64_t target, int threads) : team_(threads) {
    OnlyTarget only(target);
    kernels_ = ChooseKernels();
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

INSTANTIATE_TEST_SUITE_P(All, KernelsTest, testing::ValuesIn(AllTargets()), TargetText);

}  // namespace
}  // namespace trireme::cpu
