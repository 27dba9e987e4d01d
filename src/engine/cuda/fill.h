#pragma once
#include <cuda_runtime.h>

namespace trireme::cuda {

// A kernel for a graph that fills memory. Its arguments are pointers to: where it begins (unsigned
// char*), a number, how many of its lowest bytes are written again and again, how many bytes there
// are (unsigned, all three).
cudaKernelNodeParams FillNode(void** arguments);

}  // namespace trireme::cuda
