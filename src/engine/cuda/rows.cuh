#pragma once
#include "engine/cuda/rows.h"

namespace trireme::cuda {

// A block that takes a chunk of rows: kAcross channels, and kDown threads for each of them.
constexpr int kAcross = 32, kDown = 8;

inline dim3 ChunkGrid(const Rows& r) {
  return dim3(unsigned((r.channels + kAcross - 1) / kAcross), unsigned(r.chunks));
}
inline dim3 ChunkBlock() { return dim3(kAcross, kDown); }

// The sum over the threads of a channel, in their order; all threads of the block call it and get
// it. Call it with other memory, or after a barrier, next time.
template <class T>
__device__ T SumDown(T value, T (&shared)[kDown][kAcross]) {
  shared[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  T sum = shared[0][threadIdx.x];
  for (int i = 1; i < kDown; ++i) sum += shared[i][threadIdx.x];
  return sum;
}

// Calls visit(index of the value) for those of this thread: its channel c < channels in every
// kDown-th row of the block's chunk.
template <class F>
__device__ void ForEachOfChunk(const Rows& r, int c, const F& visit) {
  if (c >= r.channels) return;
  const size_t begin = blockIdx.y * r.chunk;
  const size_t end = begin + r.chunk < r.rows ? begin + r.chunk : r.rows;
  for (size_t row = begin + threadIdx.y; row < end; row += kDown) visit(row * r.channels + c);
}

__device__ inline size_t LengthOfChunk(const Rows& r) {
  const size_t begin = blockIdx.y * r.chunk;
  return begin + r.chunk < r.rows ? r.chunk : r.rows - begin;
}

}  // namespace trireme::cuda
