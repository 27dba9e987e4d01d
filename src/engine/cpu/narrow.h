#pragma once
#include <string>

#include "engine/cpu/call.h"
#include "graph/graph.h"

namespace trireme::cpu {

// Marks the values that are held in bf16: activations and their gradients that all their kernels
// take so. The others stay float32, and nothing is ever converted on its own: the batch, what
// losses read and make, statistics, what thin products may read. Says how many there are.
std::string NarrowValues(Graph& graph, const KernelTable& kernels);

}  // namespace trireme::cpu
