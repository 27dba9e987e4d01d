// The judge judged: engine/ref through the float interface passes its own check, and engines that
// are wrong in one place do not.
#include "engine/check/op_check.h"

#include <cstring>

#include "engine/check/compare.h"
#include "engine/ref/runner.h"
#include "graph/chains_test.h"
#include "graph/op.h"

namespace trireme::check {
namespace {

class RefRunner : public OpRunner {
 public:
  void Run(std::shared_ptr<const Program> program, const Batch& batch,
           std::span<std::byte> activations, std::span<const float> state, std::span<float> summand,
           bool accumulate) override {
    ref::Runner runner(*program);
    const Instruction& instruction = program->instructions[0];
    for (const Operand& input : instruction.inputs) {
      const size_t n = size_t(input.spec.bytes(batch.count));
      std::vector<double> numbers;
      for (size_t i = 0; i < n;) {
        const std::byte* at = &activations[input.offset + i];
        float x = float(*at);
        if (input.spec.element == Element::kFloat) std::memcpy(&x, at, 4);
        numbers.push_back(x);
        i += input.spec.element == Element::kFloat ? 4 : 1;
      }
      runner.Set(input.value, numbers);
    }
    std::vector<double> sums = Widen(summand);
    runner.Run(batch, Widen(state), sums, accumulate);
    std::ranges::copy(sums, summand.begin());
    for (const Operand& output : instruction.outputs) {
      std::byte* at = &activations[output.offset];
      for (const double number : runner.value(output.value)) {
        const float x = float(number);
        if (output.spec.element == Element::kFloat) {
          std::memcpy(at, &x, 4), at += 4;
        } else {
          *at++ = std::byte(x);
        }
      }
    }
  }
};

// All operations, and chains that only tests have.
std::vector<const OpDef*> OpsAndChains() {
  std::vector<const OpDef*> all(AllOps().begin(), AllOps().end());
  all.insert(all.end(), {&kConv2dBatchNormRelu, &kStem, &kFold, &kNormAndWeightsGrad});
  return all;
}

TEST(OpCheck, CoversEveryOperationWithEmptyAndUnevenShards) {
  for (const OpDef* op : OpsAndChains()) {
    if (op->view) continue;
    const auto cases = CasesFor(*op);
    EXPECT_GE(cases.size(), 12u) << op->name;
    bool empty = false, in_place = false;
    for (const OpCase& c : cases) empty |= c.count == 0, in_place |= c.in_place >= 0;
    EXPECT_TRUE(empty) << op->name;
    EXPECT_EQ(in_place, op->in_place != 0) << op->name;
  }
}

TEST(OpCheck, AcceptsTheJudgeItself) {
  RefRunner runner;
  for (const OpDef* op : OpsAndChains()) {
    for (const OpCase& c : CasesFor(*op)) EXPECT_TRUE(Judgement(c).Check(runner));
  }
}

enum class Wrong { kOutput, kSummand, kFirstGradient, kOverwrites, kBeyond, kInput };

class WrongRunner : public RefRunner {
 public:
  explicit WrongRunner(Wrong wrong) : wrong_(wrong) {}
  void Run(std::shared_ptr<const Program> program, const Batch& batch,
           std::span<std::byte> activations, std::span<const float> state, std::span<float> summand,
           bool accumulate) override {
    const Instruction& i = program->instructions[0];
    const bool overwrite = accumulate && wrong_ == Wrong::kOverwrites;
    RefRunner::Run(program, batch, activations, state, summand, accumulate && !overwrite);
    auto touch = [&](size_t at) { activations[at] ^= std::byte{0x40}; };
    if (wrong_ == Wrong::kOutput) touch(i.outputs.back().offset + 3);
    if (wrong_ == Wrong::kBeyond) touch(i.outputs[0].offset + i.outputs[0].spec.bytes(3));
    if (wrong_ == Wrong::kInput) touch(i.inputs[0].offset);
    if (wrong_ == Wrong::kFirstGradient) summand[i.parameters[0].begin] += 0.01f;
    if (wrong_ == Wrong::kSummand) summand[i.parameters.back().end() - 1] += 0.01f;
  }

 private:
  const Wrong wrong_;
};

// Is an engine with this mistake found out on the case with 3 of 3 samples?
bool Finds(Wrong wrong, const OpDef& op) {
  WrongRunner runner(wrong);
  for (const OpCase& c : CasesFor(op)) {
    if (c.count == 3 && c.in_place < 0 && Judgement(c).Check(runner)) return false;
  }
  return true;
}
bool Finds(Wrong wrong, const char* op) { return Finds(wrong, FindOp(op)); }

TEST(OpCheck, FindsMistakes) {
  for (const char* op : {"dense_relu", "conv2d", "batch_norm", "max_pool", "sigmoid_grad"}) {
    EXPECT_TRUE(Finds(Wrong::kOutput, op)) << op;
    EXPECT_TRUE(Finds(Wrong::kBeyond, op)) << op;
    EXPECT_TRUE(Finds(Wrong::kInput, op)) << op;
  }
  for (const char* op : {"dense_grad_weights", "conv2d_grad_weights", "batch_norm_grad"}) {
    EXPECT_TRUE(Finds(Wrong::kSummand, op)) << op;
    EXPECT_TRUE(Finds(Wrong::kOverwrites, op)) << op;
  }
  EXPECT_TRUE(Finds(Wrong::kOverwrites, "batch_norm_add_relu"));
  EXPECT_TRUE(Finds(Wrong::kOverwrites, "tally"));
}

// In any part: further outputs, statistics, gradients.
TEST(OpCheck, FindsMistakesInChains) {
  for (const OpDef* op : {&kConv2dBatchNormRelu, &kStem, &kFold}) {
    EXPECT_TRUE(Finds(Wrong::kOutput, *op)) << op->name;
    EXPECT_TRUE(Finds(Wrong::kBeyond, *op)) << op->name;
    EXPECT_TRUE(Finds(Wrong::kOverwrites, *op)) << op->name;
  }
  EXPECT_TRUE(Finds(Wrong::kSummand, kNormAndWeightsGrad));
  EXPECT_TRUE(Finds(Wrong::kFirstGradient, kNormAndWeightsGrad));
  EXPECT_TRUE(Finds(Wrong::kOverwrites, kNormAndWeightsGrad));
}

}  // namespace
}  // namespace trireme::check
