#pragma once
#include <string>

#include "graph/graph.h"

namespace trireme::cuda {

// Where a block of a residual network ends ([conv2d_]batch_norm_add_relu), backward wants to know
// of its result y only where it is positive (add_relu_[conv2d_]batch_norm_grad). There a mask
// becomes one more output of the first and takes the place of y for the second: a bit for each
// value, eight channels in a byte. Says how many there are; empty: none.
std::string MakeMasks(Graph& graph);

constexpr unsigned kSigns = 2;  // the input of the second that is y, or its mask

}  // namespace trireme::cuda
