// Whole models through the public interface, on every instruction set of this machine.
#include "engine/cpu/engine.h"

#include <gtest/gtest.h>

#include "engine/check/model_check.h"
#include "engine/cpu/targets.h"
#include "flat/host.h"
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

INSTANTIATE_TEST_SUITE_P(All, EngineTest, testing::ValuesIn(cpu::AllTargets()), cpu::TargetText);

}  // namespace
}  // namespace trireme
