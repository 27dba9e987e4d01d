// Threads share the work of a step and change no bit of it.
#include <gtest/gtest.h>

#include "engine/check/model_check.h"
#include "engine/cpu/bf16/units_here.h"
#include "engine/cpu/engine.h"
#include "engine/cpu/targets.h"
#include "flat/cpu/host.h"
#include "graph/models/example_networks_test.h"
#include "graph/models/models.h"

namespace trireme {
namespace {

class EngineThreadsTest : public testing::TestWithParam<int64_t> {};

std::vector<float> SummandOf(const Graph& graph, int threads, int count,
                             const std::string& winograd = "auto",
                             const cpu::MatrixUnit* unit = nullptr) {
  HostDevice device;
  CpuEngine engine(device, threads, winograd, unit);
  return check::SummandOf(engine, graph, count);
}

// Large enough that threads take part in all operations.
TEST_P(EngineThreadsTest, ThreadsDoNotChangeABit) {
  cpu::OnlyTarget only(GetParam());
  struct Case {
    ModelOptions model;
    Shape input;
    int count;
  };
  const Case cases[] = {
      {{.name = "mlp:40-500-10", .norm = "layer"}, {1, 1, 40}, 300},
      {{.name = "mlp:40-500-10", .activation = "tanh", .norm = "batch", .dropout = 0.3},
       {1, 1, 40},
       300},
      {{.name = "cnn"}, {28, 28, 1}, 9},
  };
  for (const auto& [model, input, count] : cases) {
    const Graph graph = BuildModel(model, input, 10);
    const auto one = SummandOf(graph, 1, count);
    for (int threads : {2, 3}) EXPECT_EQ(one, SummandOf(graph, threads, count)) << threads;
  }
}

TEST(EngineResNetTest, ThreadsDoNotChangeABit) {
  const Graph graph = BuildModel({.name = "resnet18", .stem = "3x3"}, {8, 8, 3}, 10);
  EXPECT_EQ(SummandOf(graph, 1, 5), SummandOf(graph, 3, 5));
}

TEST(EngineTransformerTest, ThreadsDoNotChangeABit) {
  const Graph graph = BuildModel({.name = "vit_ti", .dropout = 0.1}, {32, 32, 3}, 10);
  EXPECT_EQ(SummandOf(graph, 1, 3), SummandOf(graph, 3, 3));
}

TEST(EngineBFloatTest, ThreadsDoNotChangeABit) {
  const Graph dense = BuildModel({.name = "mlp:40-500-10", .norm = "layer"}, {1, 1, 40}, 10);
  for (const cpu::MatrixUnit* unit : cpu::UnitsAndPlain()) {
    const int size = unit == &cpu::kPlainUnit ? 12 : 28;  // plain loops take long
    const Graph images = BuildModel({.name = "cnn"}, {size, size, 1}, 10);
    for (const Graph* graph : {&dense, &images}) {
      const int count = graph == &dense ? 300 : 9;
      const auto one = SummandOf(*graph, 1, count, "auto", unit);
      for (int threads : {2, 3}) {
        EXPECT_EQ(one, SummandOf(*graph, threads, count, "auto", unit)) << unit->name;
      }
      EXPECT_NE(one, SummandOf(*graph, 1, count));
    }
  }
}

void ExpectSameBitsInBFloat(const cpu::MatrixUnit* unit, const ModelOptions& model,
                            const Shape& input, int count) {
  const Graph graph = BuildModel(model, input, 10);
  EXPECT_EQ(SummandOf(graph, 1, count, "auto", unit), SummandOf(graph, 3, count, "auto", unit))
      << unit->name;
}

// The second convolution's depth is cut.
constexpr char kSmallResNet[] = R"(
conv2d 64 kernel=3 padding=1 bias=no
batch_norm
relu
residual {
  conv2d 64 kernel=3 padding=1 bias=no
  batch_norm
}
relu
global_average_pool
dense classes
)";

// Where nearly all values are held in bf16.
TEST(EngineBFloatTest, ThreadsDoNotChangeABitOfAResNet) {
  for (const cpu::MatrixUnit* unit : cpu::UnitsHere()) {
    ExpectSameBitsInBFloat(unit, {.name = "resnet18", .stem = "3x3"}, {8, 8, 3}, 5);
  }
  ExpectSameBitsInBFloat(&cpu::kPlainUnit, {.name = "text", .layers = kSmallResNet}, {8, 8, 3}, 9);
}

TEST(EngineBFloatTest, ThreadsDoNotChangeABitOfATransformer) {
  for (const cpu::MatrixUnit* unit : cpu::UnitsHere()) {
    ExpectSameBitsInBFloat(unit, {.name = "vit_ti", .dropout = 0.1}, {8, 8, 3}, 3);
  }
  ExpectSameBitsInBFloat(&cpu::kPlainUnit, {.name = "text", .layers = kSmallTransformer},
                         {20, 24, 3}, 9);
}

TEST_P(EngineThreadsTest, ThreadsDoNotChangeABitOfWinograd) {
  cpu::OnlyTarget only(GetParam());
  const Graph graph = BuildModel({.name = "cnn"}, {28, 28, 1}, 10);
  for (const char* how : {"f2", "f4"}) {
    const auto one = SummandOf(graph, 1, 5, how);
    for (int threads : {2, 3}) EXPECT_EQ(one, SummandOf(graph, threads, 5, how));
    EXPECT_NE(one, SummandOf(graph, 1, 5, "off"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, EngineThreadsTest, testing::ValuesIn(cpu::TargetsForThreads()),
                         cpu::TargetText);

}  // namespace
}  // namespace trireme
