#pragma once
#include <span>
#include <string>
#include <vector>

#include "graph/engine.h"
#include "graph/graph.h"

namespace trireme::passes {

// Compile passes, one file each, in the order in which Compile runs them. Each returns a sentence
// on what it decided, for --dry-run.

// Evaluation: dropout goes, batch-norm reads its running statistics.
std::string ForEvaluation(Graph& graph);

// Training: what is frozen computes as in evaluation. Empty: nothing is.
std::string ForFrozen(Graph& graph);

// Training: chains that the engine computes as one and that have a gradient rule as one become one,
// longer ones first. Empty: there are none.
std::string FuseWithGradient(Graph& graph, const Engine& engine, int capacity);

// Training: the loss and the correct predictions are tallied, then each gradient rule adds its
// operations from the last layer to the first.
std::string AddBackward(Graph& graph);

// Operations whose results nobody reads go (the gradient of the data behind a flatten).
std::string RemoveUnread(Graph& graph);

// Chains that the engine computes as one become one, longer ones first. `results` stay values.
std::string Fuse(Graph& graph, const Engine& engine, int capacity,
                 std::span<const ValueId> results);

// Throws Error if the engine lacks a kernel.
void CheckKernels(const Graph& graph, const Engine& engine);

// Marks the values that are held in 16 bits: activations and their gradients that all their kernels
// take so. The others stay float32, and nothing is ever converted on its own: the batch, what
// losses read and make, statistics. Empty: there are none.
std::string NarrowValues(Graph& graph, const Engine& engine);

// Where each value lies: values whose lives do not overlap share memory.
struct MemoryPlan {
  std::vector<bool> is_input;   // by value: it is (a view of) the batch
  std::vector<size_t> offsets;  // by value, bytes
  size_t bytes = 0;
  std::string decision;
};
MemoryPlan PlanMemory(const Graph& graph, int capacity, std::span<const ValueId> results,
                      const Engine& engine);

// Marks the instructions after which buckets of weights are final; the tail is final at the end.
void MarkBuckets(Program& program);

// Marks the instructions before which buckets of weights or statistics must be there.
void MarkFirstReads(Program& program);

// The node that stands for `parts`, a chain of the parts of `fused`.
Node Join(const OpDef& fused, std::vector<Node> parts);

// How often each value is read.
std::vector<int> CountReaders(const Graph& graph);

}  // namespace trireme::passes
