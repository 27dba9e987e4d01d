#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "graph/engine.h"
#include "graph/graph.h"

namespace trireme::check {

struct GradientOptions {
  int count = 3;        // samples
  int coordinates = 4;  // of each parameter, drawn at random (all, if it has no more)
  double tolerance = 1e-6;
  uint64_t seed = 1;
  std::vector<float> class_weights = {};
  bool mixed = false;                // whether samples are of two classes
  std::vector<Fusion> fusions = {};  // chains to be joined before backward
};

// The gradient of the loss that engine/ref computes against central differences in double
// precision: for each parameter along some coordinates and along one random direction, in which all
// of its values take part.
testing::AssertionResult CheckGradient(const Graph& graph, const GradientOptions& options = {});

}  // namespace trireme::check
