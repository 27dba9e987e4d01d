// Every operation on every instruction set of this machine, by every algorithm, against engine/ref.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

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

// Scratch memory is planned for as many samples as a shard may have. One of fewer may be computed
// in another way, and must find room there, too: what it would take by itself (which CpuRunner
// watches).
testing::AssertionResult FewerTakeNoMore(const CpuRunners& runners, check::OpCase c) {
  std::vector<size_t> most(runners.size());
  for (int capacity = 1; capacity <= 20'000; capacity += 1 + capacity / 4) {
    c.capacity = capacity;
    const auto program = check::MakeProgram(c, {c.node});
    for (size_t i = 0; i < runners.size(); ++i) {
      const size_t floats = runners[i]->ScratchFloats(*program);
      if (floats < most[i]) {
        return testing::AssertionFailure() << runners[i]->text() << " plans " << floats << " for "
                                           << capacity << ", for fewer " << most[i];
      }
      most[i] = floats;
    }
  }
  return testing::AssertionSuccess();
}

// The same dense layer with so many weights that their panels outgrow a cache.
check::OpCase Grown(check::OpCase c) {
  for (ValueSpec& value : c.graph.values) {
    if (value.shape.channels == 784) value.shape.channels = 9001;
    if (value.shape.channels == 10) value.shape.channels = 30;
  }
  c.text += ", grown";
  return c;
}

TEST(KernelsTest, FewerSamplesTakeNoMoreScratch) {
  CpuRunners runners = RunnersOnAllTargets(1);
  std::ranges::move(RunnersOnAllTargets(3), std::back_inserter(runners));
  std::ranges::move(RunnersWith(UnitsAndPlain(), 2), std::back_inserter(runners));
  int tried = 0;
  for (const KernelRow& row : runners[0]->kernels().rows) {
    if (!row.scratch) continue;
    for (const check::OpCase& c : check::CasesFor(FindOp(row.op))) {
      if (c.count != 3 || c.in_place >= 0) continue;  // one of each setting
      std::vector<check::OpCase> alike = check::NarrowCases(c, row.narrow);
      alike.push_back(c);
      if (row.op.starts_with("dense")) alike.push_back(Grown(c));
      for (const WinogradCase& winograd : WinogradCases(c)) alike.push_back(winograd.with);
      for (const check::OpCase& each : alike) {
        EXPECT_TRUE(FewerTakeNoMore(runners, each)) << each.text;
      }
      ++tried;
    }
  }
  EXPECT_GE(tried, 150);
}

}  // namespace
}  // namespace trireme::cpu
