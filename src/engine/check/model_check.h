#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "graph/engine.h"
#include "graph/graph.h"

namespace trireme::check {

// Compiles the graph for the engine and runs it through the public interface: a shard, a second one
// accumulated, an empty one, and evaluation; compares summand and results with engine/ref, and
// that buckets come in order. Fusion and memory plan take part. A number may differ by `tolerance`
// times the largest of its tensor.
testing::AssertionResult CheckModelAgainstRef(Engine& engine, const Graph& graph, int count,
                                              int capacity, double tolerance = 1e-4);

// What forward, loss and backward of one shard of `count` random samples leave.
std::vector<float> SummandOf(Engine& engine, const Graph& graph, int count);

}  // namespace trireme::check
