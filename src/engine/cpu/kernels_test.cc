// Every operation on every instruction set of this machine, by every algorithm, against engine/ref.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "engine/check/op_check.h"
#include "engine/cpu/op_runner_test.h"
#include "graph/op.h"

namespace trireme::cpu {
namespace {

// A fused operation that only other engines have, or the gradient of one.
bool IsOfOthers(const OpDef& op, const CpuRunner& runner) {
  const bool fused = op.parts.size() > 0 || op.name == std::string_view("conv2d_batch_norm_grad");
  return fused && !runner.kernels().Find(op.name);
}

TEST(KernelsTest, TableHasEveryOperationOnce) {
  for (const int64_t target : AllTargets()) {
    const CpuRunner runner(target, 1);
    EXPECT_EQ(runner.kernels().target, hwy::TargetName(target));
    size_t operations = 0;
    for (const OpDef* op : AllOps()) {
      if (op->view || IsOfOthers(*op, runner)) continue;
      ++operations;
      EXPECT_TRUE(runner.kernels().Find(op->name)) << op->name << " on " << runner.text();
    }
    EXPECT_EQ(runner.kernels().rows.size(), operations) << runner.text();
  }
}

// The same convolution with 2x2 and 4x4 outputs at a time, which round more.
struct WinogradCase {
  check::OpCase with;
  double tolerance;
};
std::vector<WinogradCase> WinogradCases(const check::OpCase& c) {
  const Node& node = c.graph.nodes[c.node];
  const Attributes& a = node.attributes;
  std::vector<WinogradCase> cases;
  const bool convolves = std::string_view(node.op->name).starts_with("conv2d");
  if (!convolves || a.kernel != 3 || a.stride != 1 || c.count < 3) return cases;
  for (const auto& [tile, tolerance] : {std::pair(2, 4e-6), std::pair(4, 2e-5)}) {
    cases.push_back({c, tolerance});
    check::OpCase& with = cases.back().with;
    with.graph.nodes[c.node].attributes.choice = tile;
    with.text += fmt::format(", tile {}", tile);
  }
  return cases;
}

TEST(KernelsTest, EveryOperationAgreesWithRef) {
  const CpuRunners alone = RunnersOnAllTargets(1), pairs = RunnersOnAllTargets(2);
  int tried = 0, tried_winograd = 0;
  for (const OpDef* op : AllOps()) {
    if (IsOfOthers(*op, *alone[0])) continue;
    for (const check::OpCase& c : check::CasesFor(*op)) {
      const check::Judgement judgement(c);
      for (const auto& runner : alone) EXPECT_TRUE(judgement.Check(*runner)) << runner->text();
      ++tried;
      for (const auto& [with, tolerance] : WinogradCases(c)) {
        for (const auto& runner : pairs) {
          EXPECT_TRUE(judgement.Check(*runner, with, tolerance)) << runner->text();
        }
        ++tried_winograd;
      }
    }
  }
  EXPECT_GE(tried, 1000);
  EXPECT_GE(tried_winograd, 40);
}

}  // namespace
}  // namespace trireme::cpu
