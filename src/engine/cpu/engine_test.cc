// Whole models through the public interface, on every instruction set of this machine.
#include "engine/cpu/engine.h"

#include <gtest/gtest.h>

#include "engine/check/compare.h"
#include "engine/check/model_check.h"
#include "engine/cpu/targets.h"
#include "flat/host.h"
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
      {{.name = "cnn", .smoothing = 0.1f}, {12, 12, 1}, 10},
  };
}

// Large for the judge's plain loops: on the best instruction set alone.
const Model kResNet = {{.name = "resnet18", .stem = "3x3"}, {16, 16, 3}, 10};

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

TEST(EngineResNetTest, AgreesWithRef) {
  HostDevice device;
  CpuEngine engine(device, 2);
  const Graph graph = BuildModel(kResNet.options, kResNet.input, kResNet.classes);
  EXPECT_TRUE(check::CheckModelAgainstRef(engine, graph, 2, 3));
}

// Forward, loss and backward of one shard.
std::vector<float> SummandOf(const Graph& graph, int threads, int count,
                             const EngineOptions& options = {}) {
  HostDevice device;
  CpuEngine engine(device, threads, options);
  const auto program = Compile(graph, engine, count, Mode::kTrain, 1 << 20);
  const auto queue = device.NewQueue();
  const auto executable = engine.Load(program, *queue);
  std::vector<float> state = InitialState(graph, program->layout, 1);
  std::vector<float> summand(program->layout.summand, 0.0f);
  const auto samples = check::RandomFloats(2, size_t(count * graph.input().size()));
  const auto labels = check::RandomLabels(3, size_t(count), graph.num_classes());
  executable->RunShard({.inputs = samples, .labels = labels, .count = count, .loss_scale = 0.25f},
                       {state.data(), state.size(), &device},
                       {summand.data(), summand.size(), &device}, false, {});
  return summand;
}

// Large enough that threads take part in all operations.
TEST_P(EngineTest, ThreadsDoNotChangeABit) {
  cpu::OnlyTarget only(GetParam());
  struct Case {
    Model model;
    int count;
  };
  const Case cases[] = {
      {{{.name = "mlp:40-500-10", .norm = "layer"}, {1, 1, 40}, 10}, 300},
      {{{.name = "mlp:40-500-10", .activation = "tanh", .norm = "batch", .dropout = 0.3},
        {1, 1, 40},
        10},
       300},
      {{{.name = "cnn"}, {28, 28, 1}, 10}, 9},
  };
  for (const auto& [model, count] : cases) {
    const Graph graph = BuildModel(model.options, model.input, model.classes);
    const auto one = SummandOf(graph, 1, count);
    for (int threads : {2, 3}) EXPECT_EQ(one, SummandOf(graph, threads, count)) << threads;
  }
}

TEST(EngineResNetTest, ThreadsDoNotChangeABit) {
  const Graph graph = BuildModel(kResNet.options, kResNet.input, kResNet.classes);
  const auto one = SummandOf(graph, 1, 5);
  for (int threads : {2, 3}) EXPECT_EQ(one, SummandOf(graph, threads, 5)) << threads;
}

TEST_P(EngineTest, ThreadsDoNotChangeABitOfWinograd) {
  cpu::OnlyTarget only(GetParam());
  const Graph graph = BuildModel({.name = "cnn"}, {28, 28, 1}, 10);
  for (const char* how : {"f2", "f4"}) {
    const auto one = SummandOf(graph, 1, 5, {.winograd = how});
    for (int threads : {2, 3}) EXPECT_EQ(one, SummandOf(graph, threads, 5, {.winograd = how}));
    EXPECT_NE(one, SummandOf(graph, 1, 5, {.winograd = "off"}));
  }
}

INSTANTIATE_TEST_SUITE_P(All, EngineTest, testing::ValuesIn(cpu::AllTargets()), cpu::TargetText);

}  // namespace
}  // namespace trireme
