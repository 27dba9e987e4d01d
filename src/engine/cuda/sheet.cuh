#pragma once
#include "engine/cuda/launch.cuh"

namespace trireme::cuda {

// Rows of packs of channels, for threads that keep what belongs to their channels: `lanes` threads
// of a block lie beside each other, the others below.
struct Sheet {
  Sheet(size_t num_rows, int num_packs) : rows(num_rows), packs(num_packs) {
    constexpr int kMostLanes = 32;
    lanes = packs & -packs;  // the largest power of two that divides them
    if (lanes > kMostLanes) lanes = kMostLanes;
  }
  size_t rows;
  int packs, lanes;

  static constexpr int kUnroll = 4;  // rows that a thread fetches at once

  dim3 grid() const {
    constexpr size_t kTurns = 2, kMost = 65535;
    const size_t of_block = size_t(kThreads / lanes) * kUnroll * kTurns;
    const size_t down = (rows + of_block - 1) / of_block;
    return dim3(unsigned(packs / lanes), unsigned(down < kMost ? down : kMost));
  }
};

// The pack that this thread has in every row.
__device__ inline int PackOf(const Sheet& s) {
  return int(blockIdx.x) * s.lanes + int(threadIdx.x) % s.lanes;
}

// Calls fetch(row, u) for Sheet::kUnroll rows, then use(row, u) for the same.
template <class Fetch, class Use>
__device__ __forceinline__ void ForEachRow(const Sheet& s, const Fetch& fetch, const Use& use) {
  const size_t down = kThreads / s.lanes;
  const size_t of_block = down * Sheet::kUnroll;
  const size_t own = threadIdx.x / unsigned(s.lanes);
  for (size_t base = blockIdx.y * of_block; base < s.rows; base += gridDim.y * of_block) {
#pragma unroll
    for (int u = 0; u < Sheet::kUnroll; ++u) {
      const size_t row = base + u * down + own;
      if (row < s.rows) fetch(row, u);
    }
#pragma unroll
    for (int u = 0; u < Sheet::kUnroll; ++u) {
      const size_t row = base + u * down + own;
      if (row < s.rows) use(row, u);
    }
  }
}

}  // namespace trireme::cuda
