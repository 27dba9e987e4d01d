#include "trainer/dead_units.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "data/memory_source.h"
#include "engine/engines.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "graph/models/models.h"

namespace trireme {
namespace {

class DeadUnitsTest : public testing::Test {
 protected:
  void Prepare(const ModelOptions& model) {
    constexpr int kRows = 200;
    job_.graph = BuildModel(model, {1, 1, 4}, 3);
    job_.layout = LayOut(job_.graph);
    job_.normalizer = Normalizer::Identity(4);
    job_.initial_state = InitialState(job_.graph, job_.layout, 3);
    std::vector<float> values;
    std::vector<int32_t> labels;
    const Random random(8);
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < 4; ++v) values.push_back(float(random.Normal(uint64_t(4 * i + v))));
      labels.push_back(i % 3);
    }
    job_.data.train = std::make_unique<FloatSource>(SampleShape{1, 1, 4}, values, labels);
  }
  // Makes the first units of a layer say 0 whatever comes.
  void Kill(const std::string& parameter, size_t units) {
    for (size_t p = 0; p < job_.graph.parameters.size(); ++p) {
      if (job_.graph.parameters[p].name != parameter) continue;
      for (size_t i = 0; i < units; ++i) {
        job_.initial_state[job_.layout.parameters[p].begin + i] = -1000;
      }
      return;
    }
    FAIL() << parameter;
  }
  std::optional<DeadUnits> Probe() {
    const Backend backend = BackendOf(job_.recipe)({.threads = 1});
    const auto queue = backend.engine->device().NewQueue();
    const Buffer state(backend.engine->device(), job_.layout.state);
    flat::PutNow(*queue, job_.initial_state, state);
    return ProbeDeadUnits(job_, *backend.engine, *queue, state);
  }
  std::string Names() const {
    std::string names;
    for (const ParameterSpec& spec : job_.graph.parameters) names += spec.name + " ";
    return names;
  }

  Job job_;
};

TEST_F(DeadUnitsTest, AreFoundInTheLayerThatHasThem) {
  for (const std::string device : {"ref", "cpu"}) {
    job_.recipe.trainer.device = device;
    Prepare({.name = "mlp:4-8-6-3"});
    EXPECT_FALSE(Probe()) << device;
    Kill("layers.0.bias", 3);
    EXPECT_FALSE(Probe()) << "fewer than half";
    Kill("layers.0.bias", 6);
    const auto found = Probe();
    ASSERT_TRUE(found) << Names();
    EXPECT_EQ(found->layer, "layers.0");
    EXPECT_EQ(found->dead, 6);
    EXPECT_EQ(found->units, 8);
  }
}

TEST_F(DeadUnitsTest, ALayerThatIsDeadAsAWholeHidesThoseBeforeIt) {
  job_.recipe.trainer.device = "ref";
  Prepare({.name = "mlp:4-8-6-3"});
  Kill("layers.2.bias", 6);
  const auto found = Probe();
  ASSERT_TRUE(found) << Names();
  EXPECT_EQ(found->layer, "layers.2");
  EXPECT_EQ(found->share(), 1);
}

TEST_F(DeadUnitsTest, TheShiftOfANormIsLookedAt) {
  job_.recipe.trainer.device = "ref";
  Prepare({.name = "mlp:4-8-3", .norm = "batch"});
  EXPECT_FALSE(Probe());
  std::string shift;
  for (const ParameterSpec& spec : job_.graph.parameters) {
    if (spec.name.find(".bias") != spec.name.npos && spec.size() == 8) shift = spec.name;
  }
  Kill(shift, 8);
  const auto found = Probe();
  ASSERT_TRUE(found) << Names();
  EXPECT_EQ(found->dead, 8);
}

TEST_F(DeadUnitsTest, OtherActivationsDoNotDie) {
  job_.recipe.trainer.device = "ref";
  Prepare({.name = "mlp:4-8-3", .activation = "tanh"});
  Kill("layers.0.bias", 8);
  EXPECT_FALSE(Probe());
}

}  // namespace
}  // namespace trireme
