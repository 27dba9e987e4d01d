// Operations on values held in bf16, on every instruction set of this machine, and products of bf16
// on its matrix units, against engine/ref.
#include <gtest/gtest.h>

#include "engine/check/op_check.h"
#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/op_runner_test.h"
#include "graph/op.h"

namespace trireme::cpu {
namespace {

void CheckOnAll(const CpuRunners& runners, const check::Judgement& judgement,
                const std::vector<check::OpCase>& cases) {
  for (const check::OpCase& c : cases) {
    for (const auto& runner : runners) {
      EXPECT_TRUE(judgement.Check(*runner, c)) << runner->text();
    }
  }
}

TEST(KernelsBFloatTest, OperationsOnBFloatsAgreeWithRef) {
  const CpuRunners runners = RunnersOnAllTargets(1);
  size_t tried = 0;
  for (const KernelRow& row : runners[0]->kernels().rows) {
    if (row.op.starts_with("conv2d")) continue;  // needs a unit
    for (const check::OpCase& c : check::CasesFor(FindOp(row.op))) {
      const auto choices = check::NarrowCases(c, row.narrow);
      if (choices.empty()) break;
      CheckOnAll(runners, check::Judgement(c, Element::kBFloat), choices);
      tried += choices.size();
    }
  }
  EXPECT_GE(tried, 400u);
}

// Products on a unit: exact operands give what float32 gives, others differ by their rounding (2^-8
// of each).
TEST(KernelsBFloatTest, ProductsAgreeWithRef) {
  const CpuRunners alone = RunnersWithUnits(1), pairs = RunnersWithUnits(2);
  if (alone.empty()) GTEST_SKIP() << WhyNoMatrixUnit();
  size_t tried = 0;
  for (const KernelRow& row : alone[0]->kernels().rows) {
    const bool convolves = row.op.starts_with("conv2d");
    if (!convolves && !row.op.starts_with("dense")) continue;
    for (const check::OpCase& c : check::CasesFor(FindOp(row.op))) {
      const check::Judgement judgement(c, Element::kBFloat);
      CheckOnAll(pairs, judgement, {c});
      if (convolves && c.count == 3) {  // other counts: as with floats
        const auto choices = check::NarrowCases(c, row.narrow);
        CheckOnAll(alone, judgement, choices);
        tried += choices.size();
      }
      if (c.count != 1) continue;
      const check::Judgement of_any(c);
      for (const auto& runner : pairs) EXPECT_TRUE(of_any.Check(*runner, 1e-2)) << runner->text();
    }
  }
  EXPECT_GE(tried, 100u);
}

}  // namespace
}  // namespace trireme::cpu
