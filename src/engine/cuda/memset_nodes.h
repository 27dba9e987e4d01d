#pragma once
#include <cuda_runtime_api.h>

namespace trireme::cuda {

// Libraries zero a counter of 4 bytes before many of their kernels. In a graph a memset begins
// several microseconds after what it waits for, and so does what waits for it; a kernel does not.
// Small memsets of a graph become kernels.
void ReplaceMemsetNodes(cudaGraph_t graph);

}  // namespace trireme::cuda
