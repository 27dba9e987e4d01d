#include "engine/cuda/fill.h"

namespace trireme::cuda {
namespace {

constexpr unsigned kFillThreads = 128;

__global__ void Fill(unsigned char* to, unsigned value, unsigned element, unsigned bytes) {
  for (unsigned i = threadIdx.x; i < bytes; i += kFillThreads) {
    to[i] = static_cast<unsigned char>(value >> 8 * (i % element));
  }
}

}  // namespace

cudaKernelNodeParams FillNode(void** arguments) {
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(&Fill);
  params.gridDim = dim3(1);
  params.blockDim = dim3(kFillThreads);
  params.kernelParams = arguments;
  return params;
}

}  // namespace trireme::cuda
