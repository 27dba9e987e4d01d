#pragma once
#include <cuda_runtime.h>

#include <cstddef>

// How kernels take their work: a thread takes items i, i + all threads, ... of a flat list.

namespace trireme::cuda {

constexpr int kThreads = 256;

inline unsigned BlocksFor(size_t items) {
  constexpr size_t kMost = size_t{1} << 16;  // then each thread takes several
  const size_t blocks = (items + kThreads - 1) / kThreads;
  return unsigned(blocks < kMost ? blocks : kMost);
}

template <class F>
__device__ void ForEachItem(size_t items, const F& f) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < items; i += step) f(i);
}

}  // namespace trireme::cuda
