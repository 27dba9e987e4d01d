#pragma once
#include "engine/cuda/launch.cuh"

namespace trireme::cuda {

// The sum over a block of kThreads threads, as a tree: all of them call it and get it.
__device__ inline double SumBlock(double value) {
  __shared__ double shared[kThreads];
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < unsigned(half)) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  const double sum = shared[0];
  __syncthreads();  // before somebody writes the next one
  return sum;
}

// Whether a block is the last of so many that come here, all of whose threads call it. What the
// others wrote before it then sees, past its own cache (__ldcg). The counter is 0 before and after.
__device__ inline bool IsLastBlock(unsigned* counter, unsigned blocks) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicInc(counter, blocks - 1) == blocks - 1;
  __syncthreads();
  __threadfence();
  return is_last;
}

constexpr int kWarp = 32;

// Over a warp, all of whose threads call it and get it.
template <class T, class F>
__device__ T ReduceWarp(T value, const F& join) {
  for (int half = kWarp / 2; half > 0; half /= 2) {
    value = join(value, __shfl_xor_sync(0xffffffffu, value, half));
  }
  return value;
}

template <class T>
__device__ T SumWarp(T value) {
  return ReduceWarp(value, [](T a, T b) { return a + b; });
}

}  // namespace trireme::cuda
