#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "graph/models/models.h"
#include "graph/op.h"
#include "graph/paper_engine_test.h"
#include "graph/program.h"

namespace trireme {
namespace {

const std::vector<Fusion> kFusions = {{&FindOp("dense_relu")},
                                      {&FindOp("batch_norm_add")},
                                      {&FindOp("batch_norm_add_relu")},
                                      {&FindOp("batch_norm_relu")}};

Graph Model(const std::string& name, Shape input, int classes) {
  ModelOptions options;
  options.name = name;
  return BuildModel(options, input, classes);
}

struct Interval {
  size_t begin, end;
  bool Overlaps(const Operand& o, int64_t capacity) const {
    return o.offset < end && begin < o.offset + size_t(o.spec.bytes(capacity));
  }
};

// Replays the program: no write may hit a value that a later instruction still reads.
void CheckPlan(const Program& program, size_t alignment) {
  const auto& code = program.instructions;
  std::map<ValueId, size_t> last_read;
  for (size_t i = 0; i < code.size(); ++i) {
    for (const Operand& in : code[i].inputs) last_read[in.value] = i;
  }
  std::map<ValueId, Operand> live;
  for (size_t i = 0; i < code.size(); ++i) {
    for (const Operand& out : code[i].outputs) {
      if (out.is_input) continue;
      const Interval written{out.offset, out.offset + size_t(out.spec.bytes(program.capacity))};
      EXPECT_LE(written.end, program.activation_bytes);
      EXPECT_EQ(out.offset % alignment, 0u);
      for (const auto& [value, operand] : live) {
        if (!written.Overlaps(operand, program.capacity) || value == out.value) continue;
        const bool in_place =
            &out == &code[i].outputs[0] && last_read[value] == i && operand.offset == out.offset;
        EXPECT_TRUE(last_read[value] < i || in_place)
            << code[i].op->name << " " << code[i].name << " overwrites value " << value;
      }
    }
    for (const Operand& out : code[i].outputs) {
      if (!out.is_input) live[out.value] = out;
    }
  }
}

class CompileModel : public testing::TestWithParam<std::tuple<const char*, Shape, int>> {};

TEST_P(CompileModel, NoValueIsOverwrittenWhileItIsNeeded) {
  const auto& [name, input, classes] = GetParam();
  const Graph graph = Model(name, input, classes);
  for (const auto& fusions : {std::vector<Fusion>{}, kFusions}) {
    for (const size_t alignment : {64, 256}) {
      const PaperEngine engine(fusions, "", alignment);
      CheckPlan(*Compile(graph, engine, 3, Mode::kTrain, 1000), alignment);
      CheckPlan(*Compile(graph, engine, 3, Mode::kEvaluate, 1000), alignment);
    }
  }
}

TEST_P(CompileModel, BucketsFinishInOrderAndCoverTheSummand) {
  const auto& [name, input, classes] = GetParam();
  for (const size_t floats : {size_t{1}, size_t{1000}, size_t{1} << 30}) {
    const auto program =
        Compile(Model(name, input, classes), PaperEngine(kFusions), 2, Mode::kTrain, floats);
    size_t at = 0;
    for (const Bucket& bucket : program->buckets) {
      EXPECT_EQ(bucket.range.begin, at);
      at = bucket.range.end();
    }
    EXPECT_EQ(at, program->layout.summand);
    EXPECT_EQ(program->buckets.back().range.begin, program->layout.weights);
    int next = 0;
    for (const Instruction& i : program->instructions) {
      for (const int bucket : i.finishes) EXPECT_EQ(bucket, next++);
    }
    EXPECT_EQ(next + 1, int(program->buckets.size()));
  }
}

TEST_P(CompileModel, EveryParameterGetsOneGradient) {
  const auto& [name, input, classes] = GetParam();
  const auto program =
      Compile(Model(name, input, classes), PaperEngine(), 2, Mode::kTrain, 1 << 20);
  std::map<size_t, int> writers;
  for (const Instruction& i : program->instructions) {
    for (const Range& range : WrittenGradients(i)) ++writers[range.begin];
  }
  for (const Range& range : program->layout.parameters) EXPECT_EQ(writers[range.begin], 1);
}

INSTANTIATE_TEST_SUITE_P(Models, CompileModel,
                         testing::Values(std::tuple{"mlp:12-7-5-3", Shape{2, 2, 3}, 3},
                                         std::tuple{"cnn", Shape{28, 28, 1}, 10},
                                         std::tuple{"resnet18", Shape{32, 32, 3}, 10},
                                         std::tuple{"resnet50", Shape{64, 64, 3}, 10}));

TEST(Compile, GradientOfTheDataIsNotComputed) {
  // Behind a flatten, too: nobody reads it.
  const auto program =
      Compile(Model("mlp:12-7-3", {2, 2, 3}, 3), PaperEngine(), 1, Mode::kTrain, 1);
  int products = 0;
  for (const Instruction& i : program->instructions) {
    products += std::string_view(i.op->name) == "dense_grad_input";
  }
  EXPECT_EQ(products, 1);
}

TEST(Compile, AMissingKernelIsNamedBeforeTheFirstStep) {
  try {
    Compile(Model("cnn", {28, 28, 1}, 10), PaperEngine({}, "max_pool_grad"), 1, Mode::kTrain, 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("max_pool_grad"), std::string::npos) << e.what();
  }
}

TEST(Compile, EvaluationHasNoTrainingOnlyOperations) {
  const auto program = Compile(Model("cnn", {28, 28, 1}, 10), PaperEngine(), 1, Mode::kEvaluate, 1);
  for (const Instruction& i : program->instructions) {
    const std::string_view name = i.op->name;
    EXPECT_TRUE(name != "dropout" && name != "batch_norm" && name != "tally" && !i.backward)
        << name;
  }
}

TEST(Compile, FusionLeavesNoSingleRelu) {
  const auto program =
      Compile(Model("resnet18", {32, 32, 3}, 10), PaperEngine(kFusions), 1, Mode::kTrain, 1);
  std::map<std::string, int> counts;
  for (const Instruction& i : program->instructions) ++counts[i.op->name];
  EXPECT_EQ(counts["relu"], 0);
  EXPECT_EQ(counts["batch_norm_add_relu"], 8);
  EXPECT_EQ(counts["batch_norm_relu"], 9);
  EXPECT_EQ(counts["batch_norm"], 3);  // of the three downsampling paths
  EXPECT_EQ(counts["batch_norm_relu_grad"], 9);
  EXPECT_EQ(counts["relu_grad"], 8);  // behind a sum: both summands need its result
}

// Takes convolutions as they come and what stands between them all or none.
class NarrowEngine : public PaperEngine {
 public:
  NarrowOperands NarrowOperandsOf(const Node& node) const override {
    const std::string_view op = node.op->name;
    if (op == "conv2d_grad_weights") return {0b11, 0, false};
    if (op.starts_with("conv2d")) return {0b1, 0b1, false};
    if (op == "batch_norm_grad") return {0b1001, 0b1};
    if (op == "batch_norm" || op == "relu" || op == "max_pool") return {0b1, 0b1};
    if (op == "relu_grad" || op == "add") return {0b11, 0b1};
    return {};
  }
};

TEST(Compile, ValuesAreNarrowWhereAllTheirKernelsTakeThem) {
  const NarrowEngine engine;
  const Graph graph = Model("resnet18", {64, 64, 3}, 10);
  const auto program = Compile(graph, engine, 2, Mode::kTrain, 1);
  size_t narrow = 0;
  for (const Node& node : program->graph.nodes) {
    if (node.op->view) continue;
    const NarrowOperands may = engine.NarrowOperandsOf(node);
    std::set<bool> kinds;  // of the operands that may be narrow
    const auto check = [&](const std::vector<ValueId>& values, unsigned bits) {
      for (size_t i = 0; i < values.size(); ++i) {
        const bool is = program->graph.values[values[i]].element == Element::kBFloat;
        EXPECT_TRUE(!is || bits >> i & 1) << node.op->name;
        if (bits >> i & 1) kinds.insert(is);
        narrow += is;
      }
    };
    check(node.inputs, may.inputs);
    check(node.outputs, may.outputs);
    EXPECT_TRUE(!may.alike || kinds.size() < 2) << node.op->name;
  }
  EXPECT_GT(narrow, 100u);
  const auto plain = Compile(graph, PaperEngine(), 2, Mode::kTrain, 1);
  EXPECT_LT(double(program->activation_bytes), 0.8 * double(plain->activation_bytes));
  for (const Operand& o : {program->logits, program->losses}) {
    EXPECT_EQ(o.spec.element, Element::kFloat);
  }
}

}  // namespace
}  // namespace trireme
