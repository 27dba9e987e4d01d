#include <gtest/gtest.h>

#include "engine/check/model_check.h"
#include "engine/cpu/engine.h"
#include "flat/cpu/host.h"
#include "graph/models/models.h"

namespace trireme {
namespace {

// What stands within rounding of zero before a relu is let through by one and held back by the
// other: single numbers out of 400,000 make that much of a gradient.
constexpr check::Tolerances kTolerances = {.gradients = 0.05};

TEST(CpuResNetTest, AgreesWithRef) {
  HostDevice device;
  CpuEngine engine(device, 2);
  const Graph graph = BuildModel({.name = "resnet18", .stem = "3x3"}, {16, 16, 3}, 10);
  EXPECT_TRUE(check::CheckModelAgainstRef(engine, graph, 2, 3, kTolerances));
}

}  // namespace
}  // namespace trireme
