#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "graph/engine.h"
#include "graph/graph.h"

namespace trireme::check {

// Compiles the graph for the engine and runs it through the public interface: a shard, a second one
// accumulated, an empty one, one whose batch-norm is summed over ranks, and evaluation; compares
// summand and results with engine/ref, and that buckets come in order, also where several are final
// at once. Fusion and memory plan take part.
struct Tolerances {  // how far a number may be off, for each 1 of the largest of its tensor
  double values = 1e-4, gradients = 1e-4;
};
testing::AssertionResult CheckModelAgainstRef(Engine& engine, const Graph& graph, int count,
                                              int capacity, const Tolerances& tolerances = {});

// What forward, loss and backward of one shard of `count` random samples leave. Gradients are
// computed of a loss times `scale` (Batch::gradient_scale) and divided by it again: without one,
// small ones vanish in fp16.
std::vector<float> SummandOf(Engine& engine, const Graph& graph, int count, float scale = 1);

}  // namespace trireme::check
