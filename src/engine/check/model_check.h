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
struct ModelCheck {
  double values = 1e-4, gradients = 1e-4;  // may be off, for each 1 of the largest of the tensor
  // Added to the biases of batch-norms of even channels, taken from those of odd ones. A relu whose
  // number stands within rounding of zero lets it through in one computation and not in the other,
  // and gradients of deep networks differ by that much: far from zero they are compared closely.
  float norm_bias = 0;
};
testing::AssertionResult CheckModelAgainstRef(Engine& engine, const Graph& graph, int count,
                                              int capacity, const ModelCheck& how = {});

// What forward, loss and backward of one shard of `count` random samples leave. Gradients are
// computed of a loss times `scale` (Batch::gradient_scale) and divided by it again: without one,
// small ones vanish in fp16.
std::vector<float> SummandOf(Engine& engine, const Graph& graph, int count, float scale = 1);

}  // namespace trireme::check
