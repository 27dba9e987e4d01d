#pragma once
#include <string>

#include "graph/graph.h"

namespace trireme::cuda {

// The sums of batch-norm behind a max_pool need of x only what the pool chose, a quarter of it or
// less. Adds it to the outputs of batch_norm_relu_max_pool and to the inputs of
// max_pool_batch_norm_relu_grad. Says how many there are; empty: none.
std::string KeepChosen(Graph& graph);

}  // namespace trireme::cuda
