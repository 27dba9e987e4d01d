#include "engine/cuda/add.h"
#include "engine/cuda/launch.cuh"

namespace trireme::cuda {
namespace {

__global__ void Add(const float* a, const float* b, float* y, size_t size) {
  ForEachItem(size, [=](size_t i) { y[i] = a[i] + b[i]; });
}

__global__ void AddReluGrad(const float* a, const float* b, const float* y, float* dx,
                            size_t size) {
  ForEachItem(size, [=](size_t i) { dx[i] = y[i] > 0 ? a[i] + b[i] : 0; });
}

}  // namespace

void LaunchAdd(cudaStream_t stream, const float* a, const float* b, float* y, size_t size) {
  Add<<<BlocksFor(size), kThreads, 0, stream>>>(a, b, y, size);
}

void LaunchAddReluGrad(cudaStream_t stream, const float* a, const float* b, const float* y,
                       float* dx, size_t size) {
  AddReluGrad<<<BlocksFor(size), kThreads, 0, stream>>>(a, b, y, dx, size);
}

}  // namespace trireme::cuda
