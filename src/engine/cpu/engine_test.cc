// Whole models through the public interface, on every instruction set of this machine.
#include "engine/cpu/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "engine/check/model_check.h"
#include "engine/cpu/bf16/units_here.h"
#include "engine/cpu/targets.h"
#include "flat/cpu/host.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "graph/program.h"

namespace trireme {
namespace {

struct Model {
  ModelOptions options;
  Shape input;
  int classes;
};

std::vector<Model> Models() {
  return {
      {{.name = "mlp:4-30-20-3"}, {1, 1, 4}, 3},
      {{.name = "mlp:30-50-10",
        .activation = "sigmoid",
        .norm = "layer-plain",
        .loss = "squared-error"},
       {1, 1, 30},
       10},
      {{.name = "mlp:9-33-5", .activation = "tanh", .norm = "batch", .dropout = 0.3}, {1, 1, 9}, 5},
      {{.name = "mlp:9-33-5", .loss = "absolute-error"}, {1, 1, 9}, 5},
      {{.name = "cnn", .smoothing = 0.1f}, {12, 12, 1}, 10},
      {{.name = "text",
        .layers = "a: conv2d 9 3; n: batch_norm; relu; dropout 0.4; b: conv2d 8 3; m: batch_norm; "
                  "relu; flatten; c: dense classes",
        .freeze = "up to b"},
       {8, 8, 2},
       4},
  };
}

class EngineTest : public testing::TestWithParam<int64_t> {};

TEST_P(EngineTest, ModelsAgreeWithRef) {
  cpu::OnlyTarget only(GetParam());
  HostDevice device;
  CpuEngine engine(device, 2);
  for (const Model& model : Models()) {
    const Graph graph = BuildModel(model.options, model.input, model.classes);
    EXPECT_TRUE(check::CheckModelAgainstRef(engine, graph, 3, 4)) << model.options.name;
  }
}

// What a shard of one sample leaves unwritten is, formed, what it writes otherwise, to the bit.
TEST_P(EngineTest, UnwrittenGradientsAreTheWrittenOnes) {
  cpu::OnlyTarget only(GetParam());
  HostDevice device;
  CpuEngine engine(device, 1);
  const Graph graph = BuildModel({.name = "mlp:200-90-50-3"}, {1, 1, 200}, 3);
  const auto program = Compile(graph, engine, 2, Mode::kTrain, size_t{1} << 40);
  const auto queue = device.NewQueue();
  const auto executable = engine.Load(program, *queue);
  const Layout& layout = program->layout;
  const Buffer state(device, layout.state), written(device, layout.summand),
      rest(device, layout.summand);
  std::ranges::copy(InitialState(graph, layout, 1), state.slice().data);
  std::vector<float> samples(2 * 200);
  const Random random(1);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = float(random.Normal(i));
  const std::vector<int32_t> labels = {2, 1};
  std::span<const OuterProduct> unwritten;
  const auto run = [&](int count, const Buffer& summand, std::span<const OuterProduct>* leave) {
    executable->RunShard({.inputs = std::span(samples).first(size_t(count) * 200),
                          .labels = std::span(labels).first(size_t(count)),
                          .count = count,
                          .unwritten = leave},
                         state, summand, false, {});
  };
  run(1, written, nullptr);
  run(1, rest, &unwritten);
  ASSERT_EQ(unwritten.size(), 2u);  // the last layer is small
  for (const OuterProduct& outer : unwritten) {
    float* at = rest.slice().data + outer.begin;
    EXPECT_EQ(std::count(at, at + outer.rows * outer.columns, 0.0f),
              ptrdiff_t(outer.rows * outer.columns));
    for (size_t i = 0; i < outer.rows * outer.columns; ++i) {
      at[i] = outer.down[i / outer.columns] * outer.across[i % outer.columns];
    }
    EXPECT_TRUE(
        std::equal(outer.across, outer.across + OuterProduct::kWrap, outer.across + outer.columns));
  }
  EXPECT_TRUE(std::ranges::equal(rest.slice().host(), written.slice().host()));
  run(2, rest, &unwritten);
  EXPECT_TRUE(unwritten.empty());
}

// Activations and their gradients are rounded after each layer, and where two numbers of a window
// or a sign are close, another one wins: single numbers of a gradient differ much, its direction
// less (measured: by 0.08 and 0.3 of its length; as much where only the operands of products are
// rounded).
TEST(EngineBFloatTest, GradientsPointWhereThoseOfFloatsDo) {
  struct Case {
    ModelOptions model;
    Shape input;
  };
  for (const auto& [model, input] : {Case{{.name = "cnn"}, {28, 28, 1}},
                                     Case{{.name = "resnet18", .stem = "3x3"}, {16, 16, 3}}}) {
    const Graph graph = BuildModel(model, input, 10);
    const Layout layout = LayOut(graph);
    HostDevice device;
    CpuEngine plain(device, 1);
    const auto want = check::SummandOf(plain, graph, 6);
    // Plain loops would take long for a resnet.
    for (const cpu::MatrixUnit* unit :
         model.name == "cnn" ? cpu::UnitsAndPlain() : cpu::UnitsHere()) {
      CpuEngine narrow(device, 1, "auto", unit);
      const auto got = check::SummandOf(narrow, graph, 6);
      EXPECT_NEAR(got[layout.loss()], want[layout.loss()], 0.01 * want[layout.loss()]);
      double off = 0, all = 0;
      for (size_t i = 0; i < layout.weights; ++i) {
        const double apart = double(got[i]) - want[i];
        off += apart * apart;
        all += double(want[i]) * want[i];
      }
      EXPECT_LT(std::sqrt(off / all), 0.4) << model.name << " " << unit->name;
    }
  }
}

// As bench runs them.
TEST_P(EngineTest, InstructionsOneByOneMakeTheShard) {
  cpu::OnlyTarget only(GetParam());
  HostDevice device;
  CpuEngine engine(device, 1);
  const Graph graph = BuildModel({.name = "mlp:4-30-20-3"}, {1, 1, 4}, 3);
  const auto program = Compile(graph, engine, 2, Mode::kTrain, size_t{1} << 40);
  const auto queue = device.NewQueue();
  const auto executable = engine.Load(program, *queue);
  const Layout& layout = program->layout;
  const Buffer state(device, layout.state), whole(device, layout.summand),
      single(device, layout.summand);
  std::ranges::copy(InitialState(graph, layout, 1), state.slice().data);
  const std::vector<float> samples = {1, 2, 3, 4, -1, 0, 1, 2};
  const std::vector<int32_t> labels = {2, 1};
  const Batch batch{.inputs = samples, .labels = labels, .count = 2};
  executable->RunShard(batch, state, whole, false, {});
  for (size_t i = 0; i < program->instructions.size(); ++i) {
    ASSERT_TRUE(executable->RunInstruction(batch, state, single, int(i)));
  }
  EXPECT_TRUE(std::ranges::equal(whole.slice().host(), single.slice().host()));
}

// What stays float32, and how much memory the rest saves.
TEST(EngineBFloatTest, HoldsWhatLiesBetweenLayersInHalfTheMemory) {
  HostDevice device;
  const CpuEngine plain(device, 1), narrow(device, 1, "auto", cpu::UnitsAndPlain()[0]);
  const Graph graph = BuildModel({.name = "resnet18"}, {64, 64, 3}, 10);
  for (const Mode mode : {Mode::kTrain, Mode::kEvaluate}) {
    const auto before = Compile(graph, plain, 4, mode, 1 << 20);
    const auto after = Compile(graph, narrow, 4, mode, 1 << 20);
    EXPECT_LT(double(after->activation_bytes), 0.55 * double(before->activation_bytes));
    for (const Operand& o : {after->logits, after->losses, after->probabilities}) {
      EXPECT_EQ(o.spec.element, Element::kFloat);
    }
    for (const Instruction& i : after->instructions) {
      for (const Operand& input : i.inputs) {
        EXPECT_TRUE(!input.is_input || input.spec.element == Element::kFloat);
      }
    }
  }
}

// Winograd computes in float32, so its operands are.
TEST(EngineBFloatTest, OperandsOfWinogradStayFloats) {
  HostDevice device;
  const CpuEngine engine(device, 1, "f2", cpu::UnitsAndPlain()[0]);
  const Graph graph = BuildModel({.name = "resnet18"}, {64, 64, 3}, 10);
  int tried = 0;
  const auto program = Compile(graph, engine, 4, Mode::kTrain, 1 << 20);
  for (const Instruction& i : program->instructions) {
    if (!i.attributes.choice) continue;
    EXPECT_EQ(i.how, "winograd f2");
    for (const auto* operands : {&i.inputs, &i.outputs}) {
      for (const Operand& o : *operands) EXPECT_EQ(o.spec.element, Element::kFloat) << i.name;
    }
    ++tried;
  }
  EXPECT_GE(tried, 30);
}

INSTANTIATE_TEST_SUITE_P(All, EngineTest, testing::ValuesIn(cpu::AllTargets()), cpu::TargetText);

}  // namespace
}  // namespace trireme
