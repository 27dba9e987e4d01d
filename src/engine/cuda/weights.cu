#include <cstdint>

#include "engine/cuda/launch.cuh"
#include "engine/cuda/pack.cuh"
#include "engine/cuda/weights.h"

namespace trireme::cuda {
namespace {

constexpr int kAtOnce = 8;  // numbers of a thread, where they lie so
constexpr int kAcross = kTile / kAtOnce, kDown = kThreads / kAcross;

// Do all packs of kAtOnce numbers of lines of that length begin at a multiple of 16 bytes?
template <class T>
__device__ bool InPacks(const T* begin, size_t length) {
  return length % kAtOnce == 0 && reinterpret_cast<uintptr_t>(begin) % 16 == 0;
}

// Reads rows, writes columns as rows: both along the memory.
template <class From, class To>
__device__ void TransposeTile(const From* from, To* to, int rows, int columns, int tile,
                              bool accumulate) {
  __shared__ float shared[kTile][kTile + 1];  // few threads in one bank
  const int across = (columns + kTile - 1) / kTile;
  const int row = tile / across * kTile, column = tile % across * kTile;
  const int x = int(threadIdx.x) % kAcross * kAtOnce, down = int(threadIdx.x) / kAcross;
  const bool reads_packs = InPacks(from, size_t(columns)), writes_packs = InPacks(to, size_t(rows));
#pragma unroll
  for (int y = down; y < kTile; y += kDown) {
    if (row + y >= rows || column + x >= columns) continue;
    const From* const line = from + size_t(row + y) * columns + column + x;
    if (reads_packs) {
      const Floats<kAtOnce> values = Load<kAtOnce>(line);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) shared[y][x + k] = values[k];
    } else {
      const int inside = min(kAtOnce, columns - column - x);
      for (int k = 0; k < inside; ++k) shared[y][x + k] = float(line[k]);
    }
  }
  __syncthreads();
#pragma unroll
  for (int y = down; y < kTile; y += kDown) {
    if (column + y >= columns || row + x >= rows) continue;
    To* const line = to + size_t(column + y) * rows + row + x;
    if (writes_packs) {
      Floats<kAtOnce> values = {};
      if (accumulate) values = Load<kAtOnce>(line);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) values[k] += shared[x + k][y];
      Store<kAtOnce>(line, values);
    } else {
      const int inside = min(kAtOnce, rows - row - x);
      for (int k = 0; k < inside; ++k) {
        line[k] = To((accumulate ? float(line[k]) : 0) + shared[x + k][y]);
      }
    }
  }
}

template <class To>
__device__ void CopyRun(const MatrixCopy& c, const float* state, To* copies, int run) {
  const size_t begin = size_t(run) * kRun, size = min(size_t{kRun}, c.size() - begin);
  const float* const from = state + c.from + begin;
  To* const to = copies + c.to + begin;
  const size_t packs = InPacks(from, 0) && InPacks(to, 0) ? size / kAtOnce : 0;
  for (size_t i = threadIdx.x; i < packs; i += kThreads) {
    Store<kAtOnce>(to + kAtOnce * i, Load<kAtOnce>(from + kAtOnce * i));
  }
  for (size_t i = kAtOnce * packs + threadIdx.x; i < size; i += kThreads) to[i] = To(from[i]);
}

template <class To>
__global__ void MatrixCopies(MatrixTiles tiles, const float* state, To* copies) {
  const int tile = tiles.first + int(blockIdx.x);
  const MatrixCopy c = tiles.list[tiles.copy_of_tile[tile]];
  if (c.turned) {
    TransposeTile(state + c.from, copies + c.to, c.rows, c.columns, tile - c.first_tile, false);
  } else {
    CopyRun(c, state, copies, tile - c.first_tile);
  }
}

template <class From>
__global__ void GradientCopies(MatrixTiles tiles, const From* copies, float* summand,
                               bool accumulate) {
  const int tile = tiles.first + int(blockIdx.x);
  const MatrixCopy c = tiles.list[tiles.copy_of_tile[tile]];
  TransposeTile(copies + c.from, summand + c.to, c.rows, c.columns, tile - c.first_tile,
                accumulate);
}

}  // namespace

void LaunchMatrixCopies(cudaStream_t stream, const MatrixTiles& tiles, const float* state,
                        Array copies) {
  WithElement(copies.element, [&](auto zero) {
    MatrixCopies<<<unsigned(tiles.count), kThreads, 0, stream>>>(tiles, state,
                                                                 As<decltype(zero)>(copies));
  });
}

void LaunchGradientCopies(cudaStream_t stream, const MatrixTiles& tiles, Array copies,
                          float* summand, bool accumulate) {
  WithElement(copies.element, [&](auto zero) {
    GradientCopies<<<unsigned(tiles.count), kThreads, 0, stream>>>(
        tiles, As<const decltype(zero)>(copies), summand, accumulate);
  });
}

}  // namespace trireme::cuda
