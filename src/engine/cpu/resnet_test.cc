#include <gtest/gtest.h>

#include "engine/check/model_check.h"
#include "engine/cpu/engine.h"
#include "flat/cpu/host.h"
#include "graph/models/models.h"

namespace trireme {
namespace {

TEST(CpuResNetTest, AgreesWithRef) {
  HostDevice device;
  CpuEngine engine(device, 2);
  const Graph graph = BuildModel({.name = "resnet18", .stem = "3x3"}, {16, 16, 3}, 10);
  EXPECT_TRUE(
      check::CheckModelAgainstRef(engine, graph, 2, 3, {.gradients = 0.005, .norm_bias = 6}));
}

}  // namespace
}  // namespace trireme
