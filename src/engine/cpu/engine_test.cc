// Whole models through the public interface, on every instruction set of this machine.
#include "engine/cpu/engine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "engine/check/model_check.h"
#include "engine/cpu/targets.h"
#include "flat/host.h"
#include "graph/layout.h"
#include "graph/models/models.h"

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
  std::span<const Outer> unwritten;
  const auto run = [&](int count, const Buffer& summand, std::span<const Outer>* leave) {
    executable->RunShard({.inputs = std::span(samples).first(size_t(count) * 200),
                          .labels = std::span(labels).first(size_t(count)),
                          .count = count,
                          .unwritten = leave},
                         state, summand, false, {});
  };
  run(1, written, nullptr);
  run(1, rest, &unwritten);
  ASSERT_EQ(unwritten.size(), 2u);  // the last layer is small
  for (const Outer& outer : unwritten) {
    float* at = rest.slice().data + outer.begin;
    EXPECT_EQ(std::count(at, at + outer.rows * outer.columns, 0.0f),
              ptrdiff_t(outer.rows * outer.columns));
    for (size_t i = 0; i < outer.rows * outer.columns; ++i) {
      at[i] = outer.down[i / outer.columns] * outer.across[i % outer.columns];
    }
    EXPECT_TRUE(
        std::equal(outer.across, outer.across + Outer::kWrap, outer.across + outer.columns));
  }
  EXPECT_TRUE(std::ranges::equal(rest.slice().host(), written.slice().host()));
  run(2, rest, &unwritten);
  EXPECT_TRUE(unwritten.empty());
}

INSTANTIATE_TEST_SUITE_P(All, EngineTest, testing::ValuesIn(cpu::AllTargets()), cpu::TargetText);

}  // namespace
}  // namespace trireme
