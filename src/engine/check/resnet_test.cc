#include "engine/check/gradient_check.h"
#include "graph/models/models.h"

namespace trireme::check {
namespace {

TEST(ResNetGradient, AgreesWithDifferences) {
  const Graph graph = BuildModel({.name = "resnet18"}, {8, 8, 3}, 5);
  EXPECT_TRUE(CheckGradient(graph, {.coordinates = 0}));
}

}  // namespace
}  // namespace trireme::check
