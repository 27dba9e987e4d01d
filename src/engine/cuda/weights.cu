#include "engine/cuda/weights.h"

namespace trireme::cuda {
namespace {

constexpr int kDownOfTile = 8;  // rows of a tile that a block takes at once

// Reads rows, writes columns as rows: both along the memory.
__device__ void TransposeTile(const float* from, float* to, int rows, int columns, int tile,
                              bool accumulate) {
  __shared__ float shared[kTile][kTile + 1];  // no two threads in one bank
  const int across = (columns + kTile - 1) / kTile;
  const int row = tile / across * kTile, column = tile % across * kTile;
  const int x = int(threadIdx.x);
  for (int y = int(threadIdx.y); y < kTile; y += kDownOfTile) {
    if (row + y >= rows || column + x >= columns) continue;
    shared[y][x] = from[size_t(row + y) * columns + column + x];
  }
  __syncthreads();
  for (int y = int(threadIdx.y); y < kTile; y += kDownOfTile) {
    if (column + y >= columns || row + x >= rows) continue;
    float& out = to[size_t(column + y) * rows + row + x];
    out = (accumulate ? out : 0) + shared[x][y];
  }
}

__global__ void Transpositions(const Transposition* list, int size, int first, const float* state,
                               float* copies) {
  const int tile = first + int(blockIdx.x);
  int begin = 0, end = size;  // the last transposition that does not begin behind the tile
  while (end - begin > 1) {
    const int middle = (begin + end) / 2;
    (list[middle].first_tile <= tile ? begin : end) = middle;
  }
  const Transposition t = list[begin];
  TransposeTile(state + t.from, copies + t.to, t.rows, t.columns, tile - t.first_tile, false);
}

__global__ void TransposeInto(const float* from, int rows, int columns, float* to,
                              bool accumulate) {
  TransposeTile(from, to, rows, columns, int(blockIdx.x), accumulate);
}

}  // namespace

void LaunchTranspositions(cudaStream_t stream, const Transposition* list, int size, int first,
                          int tiles, const float* state, float* copies) {
  if (tiles == 0) return;
  Transpositions<<<unsigned(tiles), dim3(kTile, kDownOfTile), 0, stream>>>(list, size, first, state,
                                                                           copies);
}

void LaunchTransposeInto(cudaStream_t stream, const float* from, int rows, int columns, float* to,
                         bool accumulate) {
  const Transposition t{.rows = rows, .columns = columns};
  TransposeInto<<<unsigned(t.tiles()), dim3(kTile, kDownOfTile), 0, stream>>>(from, rows, columns,
                                                                              to, accumulate);
}

}  // namespace trireme::cuda
