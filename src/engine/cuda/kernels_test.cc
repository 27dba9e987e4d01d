// Every operation on a card against engine/ref: skipped where there is none, with the reason.
#include "engine/cuda/kernels.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string_view>
#include <tuple>

#include "base/error.h"
#include "engine/check/activations.h"
#include "engine/check/compare.h"
#include "engine/check/op_check.h"
#include "engine/cuda/engine.h"
#include "engine/cuda/library.h"
#include "engine/cuda/op_runner_test.h"
#include "engine/ref/runner.h"
#include "graph/op.h"

namespace trireme::cuda {
namespace {

// Of the largest number of a tensor.
constexpr double kF32 = 2e-5, kCutOff = 2e-4, kTf32 = 2e-3;

// What operands of 16 bits are held as, and how far their products may be off.
struct Narrow {
  Precision precision;
  double tolerance;
  Element element() const { return OperandsIn(precision); }
};
constexpr Narrow kNarrow[] = {{Precision::kBf16, 1e-2}, {Precision::kFp16, 2e-3}};

// A fused operation that only other engines have.
bool IsOfOthers(const OpDef& op) { return op.parts.size() > 0 && !FindKernel(op.name); }

TEST(CudaTableTest, HasEveryOperationOnce) {
  size_t operations = 0;
  for (const OpDef* op : AllOps()) {
    if (op->view || IsOfOthers(*op)) continue;
    ++operations;
    EXPECT_NE(FindKernel(op->name), nullptr) << op->name;
  }
  EXPECT_EQ(Kernels().size(), operations);
}

// A lost row of a fused operation would look like one that only other engines have.
TEST(CudaTableTest, HasEveryFusionThatTheEngineAsksFor) {
  for (const Precision precision : kPrecisions) {
    for (const Fusion& fusion : FusionsIn(precision)) {
      EXPECT_NE(FindKernel(fusion.op->name), nullptr) << fusion.op->name;
    }
  }
}

class CudaKernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    static const Survey survey = AskInChild(TRIREME_CUDA_PLUGIN_FILE);
    if (!survey.problem.empty()) GTEST_SKIP() << survey.problem;
  }
};

bool Convolves(const OpDef& op) {
  return std::string_view(op.name).find("conv2d") != std::string_view::npos;
}

bool Attends(const OpDef& op) { return std::string_view(op.name).starts_with("attention"); }

// Products with factors that were found on the way: these are never short numbers.
bool Scales(const OpDef& op) {
  return Attends(op) ||
         (Convolves(op) && std::string_view(op.name).find("batch_norm") != std::string_view::npos);
}

bool Multiplies(const OpDef& op) {
  return Convolves(op) || Attends(op) || std::string_view(op.name).starts_with("dense");
}

TEST_F(CudaKernelsTest, EveryOperationAgreesWithRef) {
  CudaRunner runner(Precision::kF32);
  int tried = 0;
  for (const OpDef* op : AllOps()) {
    if (IsOfOthers(*op)) continue;
    for (const check::OpCase& c : check::CasesFor(*op)) {
      EXPECT_TRUE(check::Judgement(c).Check(runner, kF32));
      ++tried;
    }
  }
  EXPECT_GE(tried, 1000);
  RecordProperty("sizes_without_a_plan", runner.conv().plain());
}

// tf32 holds short numbers exactly, so that their products are those of float32; others round,
// which the slope of an activation may make much of.
TEST_F(CudaKernelsTest, ProductsInTf32AgreeWithRef) {
  CudaRunner runner(Precision::kTf32);
  int tried = 0;
  for (const OpDef* op : AllOps()) {
    if (!Multiplies(*op) || IsOfOthers(*op)) continue;
    const std::string_view name = op->name;
    const bool bends = name.ends_with("sigmoid") || name.ends_with("tanh");
    for (const check::OpCase& c : check::CasesFor(*op)) {
      const double tolerance = Scales(*op) ? kTf32 : kCutOff;
      EXPECT_TRUE(check::Judgement(c, Element::kBFloat).Check(runner, tolerance));
      if (!bends) {
        EXPECT_TRUE(check::Judgement(c).Check(runner, kTf32));
      }
      ++tried;
    }
  }
  EXPECT_GE(tried, 200);
  RecordProperty("sizes_without_a_plan", runner.conv().plain());
}

class CudaNarrowTest : public CudaKernelsTest, public testing::WithParamInterface<Narrow> {};
INSTANTIATE_TEST_SUITE_P(All, CudaNarrowTest, testing::ValuesIn(kNarrow), [](const auto& tried) {
  return std::string(NameOf(tried.param.precision));
});

// Values held in 16 bits, in every way that a kernel takes them, and those that stay float32.
TEST_P(CudaNarrowTest, OperationsAgreeWithRef) {
  const Element element = GetParam().element();
  CudaRunner runner(GetParam().precision);
  size_t tried = 0;
  for (const KernelRow& row : Kernels()) {
    if (Multiplies(FindOp(row.op))) continue;
    for (const check::OpCase& c : check::CasesFor(FindOp(row.op))) {
      const auto choices = check::NarrowCases(c, row.narrow, element);
      if (choices.empty()) break;
      const check::Judgement judgement(c, element);
      for (const check::OpCase& choice : choices)
        EXPECT_TRUE(judgement.Check(runner, choice, kF32));
      tried += choices.size();
    }
  }
  EXPECT_GE(tried, 400u);
}

// What stands in 16 bits between a library and the summand, or a value in float32, rounds once.
TEST_P(CudaNarrowTest, ProductsAgreeWithRef) {
  const auto [precision, tolerance] = GetParam();
  const Element element = GetParam().element();
  CudaRunner runner(precision);
  size_t tried = 0;
  for (const KernelRow& row : Kernels()) {
    const std::string_view name = row.op;
    if (!Multiplies(FindOp(name))) continue;
    const bool bends = name.ends_with("sigmoid") || name.ends_with("tanh");
    for (const check::OpCase& c : check::CasesFor(FindOp(name))) {
      const check::Judgement judgement(c, element);
      EXPECT_TRUE(judgement.Check(runner, tolerance));
      for (const check::OpCase& choice : check::NarrowCases(c, row.narrow, element)) {
        EXPECT_TRUE(judgement.Check(runner, choice, tolerance));
        ++tried;
      }
      if (!bends && c.count == 1) {
        EXPECT_TRUE(check::Judgement(c).Check(runner, tolerance));
      }
    }
  }
  EXPECT_GE(tried, 600u);
  RecordProperty("sizes_without_a_plan", runner.conv().plain());
}

void CheckPlainConvolutions(Precision precision, double tolerance) {
  CudaRunner runner(precision, /*only_plain=*/true);
  for (const OpDef* op : AllOps()) {
    if (!Convolves(*op) || IsOfOthers(*op)) continue;
    for (const check::OpCase& c : check::CasesFor(*op)) {
      EXPECT_TRUE(check::Judgement(c, OperandsIn(precision)).Check(runner, tolerance));
    }
  }
  EXPECT_GE(runner.conv().plain(), 50);
}
TEST_F(CudaKernelsTest, PlainConvolutionsAgreeWithRef) {
  CheckPlainConvolutions(Precision::kF32, kF32);
}
TEST_P(CudaNarrowTest, PlainConvolutionsAgreeWithRef) {
  CheckPlainConvolutions(GetParam().precision, GetParam().tolerance);
}

// Checks a case in float32, then with its values in 16 bits, on runners of each precision.
class AllRunners {
 public:
  void Check(const check::OpCase& c, bool narrow = true) {
    EXPECT_TRUE(check::Judgement(c).Check(*plain_, kF32)) << c.text;
    for (size_t i = 0; narrow && i < std::size(kNarrow); ++i) {
      const Element element = kNarrow[i].element();
      const NarrowOperands operands = FindKernel(c.graph.nodes[c.node].op->name)->narrow;
      const auto choices = check::NarrowCases(c, operands, element);
      if (choices.empty()) return;
      const check::Judgement judgement(c, element);
      for (const check::OpCase& choice : choices) {
        EXPECT_TRUE(judgement.Check(*narrow_[i], choice, kF32)) << c.text;
      }
    }
  }

 private:
  static std::unique_ptr<CudaRunner> Make(Precision precision) {
    return std::make_unique<CudaRunner>(precision);
  }
  const std::unique_ptr<CudaRunner> plain_ = Make(Precision::kF32);
  const std::unique_ptr<CudaRunner> narrow_[2] = {Make(kNarrow[0].precision),
                                                  Make(kNarrow[1].precision)};
};

// Sums of so many rows that a chunk has more than the fewest, and the last one is short.
TEST_F(CudaKernelsTest, SumsOfManyRowsAgreeWithRef) {
  AllRunners runners;
  int tried = 0;
  for (const char* op :
       {"batch_norm_add_relu", "batch_norm_grad", "batch_norm_relu_grad",
        "add_relu_batch_norm_grad", "conv2d_grad_weights", "dense_grad_weights", "layer_norm_grad",
        "class_token_grad", "position_embedding_grad", "tally"}) {
    for (check::OpCase c : check::CasesFor(FindOp(op))) {
      const Node& node = c.graph.nodes[c.node];
      const ValueId value = node.outputs.empty() ? node.inputs.back() : node.outputs[0];
      const Shape shape = c.graph.values[value].shape;
      if (c.count != 1 || c.in_place >= 0 || shape.channels > 100) continue;
      const bool product = Multiplies(FindOp(op));
      const bool layer = !product && std::string_view(op).find("batch") == std::string_view::npos;
      const int64_t input = c.graph.values[node.inputs[0]].shape.size();
      if ((product && (shape.channels > 33 || input > 300)) || (layer && input > 200)) {
        continue;  // takes long
      }
      c.count = c.capacity = (product ? 9'001 : 40'001) / (shape.height * shape.width) + 1;
      runners.Check(c, /*narrow=*/!product);
      ++tried;
    }
  }
  EXPECT_GE(tried, 10);
}

// The case with so many channels where it has others.
check::OpCase WithChannels(check::OpCase c, int others, int channels) {
  for (ValueSpec& spec : c.graph.values) {
    if (spec.shape.channels == others) spec.shape.channels = channels;
  }
  for (auto* specs : {&c.graph.parameters, &c.graph.statistics}) {
    for (ParameterSpec& spec : *specs) spec.shape = {channels};
  }
  c.text += fmt::format(", but {} channels", channels);
  return c;
}

// Samples and tokens that a warp holds, in whole packs or not, and larger ones.
TEST_F(CudaKernelsTest, LayerNormsOfManySizesAgreeWithRef) {
  AllRunners runners;
  int tried = 0;
  for (const char* op : {"layer_norm", "layer_norm_grad"}) {
    for (const int channels : {8, 128, 130, 192, 264, 384, 768, 1000, 1024, 1032, 2050}) {
      for (check::OpCase c : check::CasesFor(FindOp(op))) {
        if (c.count != 3 || c.graph.values[c.graph.nodes[0].inputs[0]].shape != Shape{70, 1, 40}) {
          continue;
        }
        c = WithChannels(c, 40, channels);
        c.count = c.capacity = 9;
        runners.Check(c);
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 2 * 11);
}

// A case of attention with heads of so many channels.
check::OpCase AttentionCase(const char* op, int tokens, int heads, int channels) {
  for (check::OpCase c : check::CasesFor(FindOp(op))) {
    const Shape before = c.graph.values[c.graph.nodes[0].inputs[0]].shape;
    if (c.count != 2 || before != Shape{64, 1, 3 * 64}) continue;
    for (ValueSpec& spec : c.graph.values) {
      Shape& shape = spec.shape;
      if (shape.height != 64) continue;
      shape.height = tokens;
      shape.channels = shape.channels == 1 ? heads : shape.channels / 64 * heads * channels;
    }
    for (Node& node : c.graph.nodes) node.attributes.heads = heads;
    c.text += fmt::format(", but {} tokens, {} heads of {}", tokens, heads, channels);
    return c;
  }
  ADD_FAILURE() << "no case of " << op;
  return {};
}

// Single rows, whole and broken tiles, heads that are narrower and wider than a tile.
TEST_F(CudaKernelsTest, AttentionOfManySizesAgreesWithRef) {
  constexpr std::pair<Precision, double> kTried[] = {{Precision::kF32, kF32},
                                                     {Precision::kTf32, kTf32},
                                                     {Precision::kBf16, kNarrow[0].tolerance},
                                                     {Precision::kFp16, kNarrow[1].tolerance}};
  for (const auto& [precision, tolerance] : kTried) {
    CudaRunner runner(precision);
    for (const char* op : {"attention", "attention_grad"}) {
      for (const auto& [tokens, heads, channels] : {std::tuple(1, 3, 64),
                                                    {5, 1, 64},
                                                    {16, 1, 64},
                                                    {65, 3, 64},
                                                    {197, 3, 64},
                                                    {130, 1, 80},
                                                    {70, 2, 128},
                                                    {33, 1, 200},
                                                    {100, 2, 24},
                                                    {257, 1, 32},
                                                    {63, 1, 7}}) {
        const check::OpCase c = AttentionCase(op, tokens, heads, channels);
        const Element element = OperandsIn(precision);
        const check::Judgement judgement(c, element);
        EXPECT_TRUE(judgement.Check(runner, tolerance)) << NameOf(precision);
        if (!IsNarrow(element)) continue;
        for (const check::OpCase& choice : check::NarrowCases(c, FindKernel(op)->narrow, element)) {
          EXPECT_TRUE(judgement.Check(runner, choice, tolerance)) << NameOf(precision);
        }
      }
    }
  }
}

// Rows that a warp holds, and longer ones.
TEST_F(CudaKernelsTest, LossesOfManyClassesAgreeWithRef) {
  AllRunners runners;
  int tried = 0;
  for (const char* op : {"softmax_cross_entropy", "softmax_cross_entropy_grad", "tally"}) {
    for (const int classes : {32, 33, 128, 129, 1000, 1024, 1025, 2500}) {
      for (check::OpCase c : check::CasesFor(FindOp(op))) {
        if (c.count != 3 || c.graph.values[c.graph.nodes[0].inputs[0]].shape.channels != 100) {
          continue;
        }
        c = WithChannels(c, 100, classes);
        c.count = c.capacity = 77;
        runners.Check(c);
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 3 * 8);
}

// One operation with an input of this test's making, and what engine/ref makes of it.
class Compared {
 public:
  Compared(const check::OpCase& c, float mean, FunctionRef<void(std::span<double>)> sum)
      : program_(check::MakeProgram(c, {c.node})), activations_(program_->activation_bytes) {
    const Instruction& i = program_->instructions[0];
    const Layout& layout = program_->layout;
    ref::Runner judge(*program_);
    for (size_t k = 0; k < i.inputs.size(); ++k) {
      const Operand& input = i.inputs[k];
      const size_t size = size_t(input.spec.shape.size() * (input.spec.per_sample ? c.count : 1));
      std::vector<float> numbers = check::RandomFloats(k + 1, size);
      // x and its mean, which a gradient reads, lie there; 1 / deviation is about 1.
      if (k == 0 || (i.op->writes_gradients && k == 1)) {
        for (float& x : numbers) x = k == 0 ? x + mean : mean + 0.1f * x;
      }
      if (i.op->writes_gradients && k == 2) {
        for (float& x : numbers) x = 1 + 0.1f * x;
      }
      judge.Set(input.value, check::Widen(numbers));
      activations_.Put(input, check::Widen(numbers));
    }
    state_ = check::RandomFloats(20, layout.state);
    got_.assign(layout.summand, 0);
    want_.assign(layout.summand, 0);
    const Batch batch{.count = c.count, .statistics_scale = 0.5f, .sum_over_shards = sum};
    judge.Run(batch, check::Widen(state_), want_, false);
    CudaRunner(Precision::kF32).Run(program_, batch, activations_.bytes(), state_, got_, false);
    for (const Operand& output : i.outputs) {
      const std::vector<double>& numbers = judge.value(output.value);
      EXPECT_TRUE(check::Near(c.text, activations_.Get(output, numbers.size()), numbers, kF32));
    }
    for (const auto* ranges : {&i.parameters, &i.statistics}) {
      for (const Range& r : *ranges) {
        EXPECT_TRUE(check::Near(c.text, std::span(got_).subspan(r.begin, r.size),
                                std::span(want_).subspan(r.begin, r.size), kF32));
      }
    }
  }

 private:
  std::shared_ptr<const Program> program_;
  check::Activations activations_;
  std::vector<float> state_, got_;
  std::vector<double> want_;
};

// A case of batch-norm with several chunks of rows.
check::OpCase BatchNormCase(const char* op, int count, const Shape& wanted = {4, 4, 64}) {
  for (check::OpCase c : check::CasesFor(FindOp(op))) {
    const Shape shape = c.graph.values[c.graph.nodes[c.node].outputs[0]].shape;
    if (shape != wanted) continue;
    c.count = c.capacity = count;
    return c;
  }
  ADD_FAILURE() << "no case of " << op;
  return {};
}

TEST_F(CudaKernelsTest, BatchNormStandsMeansFarFromZero) {
  for (const float mean : {1000.0f, -300.0f}) {
    for (const int count : {3, 301, 7001}) Compared(BatchNormCase("batch_norm", count), mean, {});
  }
}

// Held by a block, by clusters of several sizes, and too large for that (batch_norm_rules.h).
TEST_F(CudaKernelsTest, BatchNormOfManySizesAgreesWithRef) {
  AllRunners runners;
  int tried = 0;
  for (const char* op : {"batch_norm", "batch_norm_relu", "batch_norm_add", "batch_norm_add_relu",
                         "batch_norm_grad", "batch_norm_relu_grad", "add_relu_batch_norm_grad"}) {
    for (const auto& [channels, count] :
         {std::pair(8, 3), {72, 40}, {16, 121}, {256, 49}, {64, 300}, {40, 701}, {64, 2048}}) {
      for (check::OpCase c : check::CasesFor(FindOp(op))) {
        const Shape shape = c.graph.values[c.graph.nodes[c.node].outputs[0]].shape;
        if (c.count != 1 || shape != Shape{4, 4, 64}) continue;
        if (count > 1000 && c.in_place >= 0) continue;  // takes long
        c = WithChannels(c, 64, channels);
        c.count = c.capacity = count;
        runners.Check(c);
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 7 * 7);
}

TEST_F(CudaKernelsTest, AFailingCallNamesOperationLayerAndSizes) {
  const auto fail = [](std::span<double>) { throw Error("a rank is lost"); };
  CudaRunner runner(Precision::kF32);
  const check::OpCase c = BatchNormCase("batch_norm", 20);
  const auto program = check::MakeProgram(c, {c.node});
  check::Activations activations(program->activation_bytes);
  const std::vector<float> state(program->layout.state);
  std::vector<float> summand(program->layout.summand);
  try {
    runner.Run(program, {.count = 20, .sum_over_shards = fail}, activations.bytes(), state, summand,
               false);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "a rank is lost (operation batch_norm of layer tried, 4x4x64 -> 4x4x64, 64, 64, "
                 "20 samples)");
  }
}

// As if another rank had the same shard.
TEST_F(CudaKernelsTest, BatchNormSumsOverShards) {
  int called = 0;
  const auto twice = [&](std::span<double> sums) {
    for (double& sum : sums) sum *= 2;
    ++called;
  };
  for (const char* op : {"batch_norm", "batch_norm_relu", "batch_norm_grad"}) {
    called = 0;
    Compared(BatchNormCase(op, 20), 0.5f, twice);
    EXPECT_GE(called, 2) << op;  // engine/ref's, and the card's
  }
  // The gradient's mean is not that of its own shard.
  for (const auto& [op, shape] : {std::pair("conv2d_batch_norm", Shape{12, 10, 64}),
                                  std::pair("conv2d_batch_norm_grad", Shape{12, 10, 16})}) {
    called = 0;
    Compared(BatchNormCase(op, 20, shape), 0.5f, twice);
    EXPECT_GE(called, 2) << op;
  }
}

}  // namespace
}  // namespace trireme::cuda
