#pragma once
#include <string>

#include "graph/graph.h"

namespace trireme::cuda {

// A stem's convolution gives 2x2 results at a time where they may lie together (fold.h): as cells,
// row by row, each with its four pixels, row by row. Marks the operations of a graph that write and
// read values in this order (kInCells), where nobody else does: the convolution,
// batch_norm_relu_max_pool, both gradients. The folded images stay for the gradient, held as
// `element`. Says how many there are; empty: none.
std::string MakeCells(Graph& graph, Element element);

}  // namespace trireme::cuda
