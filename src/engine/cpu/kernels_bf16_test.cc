// Operations on values held in bf16, on every instruction set of this machine, and products of bf16
// on its matrix units, against engine/ref.
#include <gtest/gtest.h>

#include "engine/check/op_check.h"
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

// Operations that hold values in bf16 only where a unit computes their products.
bool NeedsUnit(std::string_view op) {
  return op.starts_with("conv2d") || op.starts_with("dense") || op.starts_with("attention");
}

TEST(KernelsBFloatTest, OperationsOnBFloatsAgreeWithRef) {
  const CpuRunners runners = RunnersOnAllTargets(1);
  size_t tried = 0;
  for (const KernelRow& row : runners[0]->kernels().rows) {
    if (NeedsUnit(row.op)) continue;
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
// of each). On machines without a unit, on one of plain loops.
TEST(KernelsBFloatTest, ProductsAgreeWithRef) {
  const CpuRunners alone = RunnersWith(UnitsAndPlain(), 1), pairs = RunnersWith(UnitsAndPlain(), 2);
  size_t tried = 0;
  for (const KernelRow& row : alone[0]->kernels().rows) {
    if (!NeedsUnit(row.op) || row.op.starts_with("attention")) continue;
    for (const check::OpCase& c : check::CasesFor(FindOp(row.op))) {
      const check::Judgement judgement(c, Element::kBFloat);
      CheckOnAll(pairs, judgement, {c});
      if (c.count == 3) {  // other counts: as with floats
        const auto choices = check::NarrowCases(c, row.narrow);
        CheckOnAll(alone, judgement, choices);
        tried += choices.size();
      }
      if (c.count != 1) continue;
      // Of the largest result, which behind these two is 1, however large the products are: here up
      // to some ten times that.
      const bool bounded = row.op.ends_with("_sigmoid") || row.op.ends_with("_tanh");
      const double tolerance = bounded ? 1e-1 : 1e-2;
      const check::Judgement of_any(c);
      for (const auto& runner : pairs) {
        EXPECT_TRUE(of_any.Check(*runner, tolerance)) << runner->text();
      }
    }
  }
  EXPECT_GE(tried, 100u);
}

// Its products follow one another, each of operands that were rounded.
TEST(KernelsBFloatTest, AttentionAgreesWithRef) {
  const CpuRunners runners = RunnersWith(UnitsAndPlain(), 2);
  constexpr double kTolerance = 4e-2;
  size_t tried = 0;
  for (const char* op : {"attention", "attention_grad"}) {
    const NarrowOperands narrow = runners[0]->kernels().Find(op)->narrow;
    for (const check::OpCase& c : check::CasesFor(FindOp(op))) {
      if (c.count != 3) continue;  // other counts: as with floats
      const check::Judgement judgement(c), of_narrow(c, Element::kBFloat);
      for (const auto& runner : runners) {
        EXPECT_TRUE(judgement.Check(*runner, kTolerance)) << runner->text();
        for (const check::OpCase& alike : check::NarrowCases(c, narrow)) {
          EXPECT_TRUE(of_narrow.Check(*runner, alike, kTolerance)) << runner->text();
          ++tried;
        }
      }
    }
  }
  EXPECT_GE(tried, 12u);
}

}  // namespace
}  // namespace trireme::cpu
