#include "engine/cuda/pack.cuh"
#include "engine/cuda/weights.h"

namespace trireme::cuda {
namespace {

constexpr int kDownOfTile = 8;  // rows of a tile that a block takes at once

// Reads rows, writes columns as rows: both along the memory.
template <class From, class To>
__device__ void TransposeTile(const From* from, To* to, int rows, int columns, int tile,
                              bool accumulate) {
  __shared__ float shared[kTile][kTile + 1];  // no two threads in one bank
  const int across = (columns + kTile - 1) / kTile;
  const int row = tile / across * kTile, column = tile % across * kTile;
  const int x = int(threadIdx.x);
  for (int y = int(threadIdx.y); y < kTile; y += kDownOfTile) {
    if (row + y >= rows || column + x >= columns) continue;
    shared[y][x] = float(from[size_t(row + y) * columns + column + x]);
  }
  __syncthreads();
  for (int y = int(threadIdx.y); y < kTile; y += kDownOfTile) {
    if (column + y >= columns || row + x >= rows) continue;
    To& out = to[size_t(column + y) * rows + row + x];
    out = To((accumulate ? float(out) : 0) + shared[x][y]);
  }
}

__device__ void StoreFour(float* to, const float4& from) { *reinterpret_cast<float4*>(to) = from; }
__device__ void StoreFour(BFloat* to, const float4& from) {
  auto* const pairs = reinterpret_cast<__nv_bfloat162*>(to);
  pairs[0] = __floats2bfloat162_rn(from.x, from.y);
  pairs[1] = __floats2bfloat162_rn(from.z, from.w);
}

// Four numbers at a time, if they lie so.
template <class To>
__device__ void CopyRun(const MatrixCopy& c, const float* state, To* copies, int run) {
  constexpr int kBlock = kTile * kDownOfTile;
  const float* const from = state + c.from;
  To* const to = copies + c.to;
  const size_t begin = size_t(run) * kRun, end = min(begin + kRun, c.size());
  const int own = int(threadIdx.y) * kTile + int(threadIdx.x);
  const size_t fours = c.from % 4 == 0 && c.to % 4 == 0 ? (end - begin) / 4 : 0;
  for (size_t i = own; i < fours; i += kBlock) {
    const size_t at = begin + 4 * i;
    StoreFour(to + at, *reinterpret_cast<const float4*>(from + at));
  }
  for (size_t at = begin + 4 * fours + own; at < end; at += kBlock) to[at] = To(from[at]);
}

template <class To>
__global__ void MatrixCopies(const MatrixCopy* list, int size, int first, const float* state,
                             To* copies) {
  const int tile = first + int(blockIdx.x);
  int begin = 0, end = size;  // the last copy that does not begin behind the tile
  while (end - begin > 1) {
    const int middle = (begin + end) / 2;
    (list[middle].first_tile <= tile ? begin : end) = middle;
  }
  const MatrixCopy c = list[begin];
  if (c.turned) {
    TransposeTile(state + c.from, copies + c.to, c.rows, c.columns, tile - c.first_tile, false);
  } else {
    CopyRun(c, state, copies, tile - c.first_tile);
  }
}

template <class From>
__global__ void TransposeInto(const From* from, int rows, int columns, float* to, bool accumulate) {
  TransposeTile(from, to, rows, columns, int(blockIdx.x), accumulate);
}

}  // namespace

void LaunchMatrixCopies(cudaStream_t stream, const MatrixCopy* list, int size, int first, int tiles,
                        const float* state, Array copies) {
  if (tiles == 0) return;
  WithElement(copies.narrow, [&](auto zero) {
    MatrixCopies<<<unsigned(tiles), dim3(kTile, kDownOfTile), 0, stream>>>(
        list, size, first, state, As<decltype(zero)>(copies));
  });
}

void LaunchTransposeInto(cudaStream_t stream, Array from, int rows, int columns, float* to,
                         bool accumulate) {
  const MatrixCopy t{.rows = rows, .columns = columns, .turned = true};
  WithElement(from.narrow, [&](auto zero) {
    TransposeInto<<<unsigned(t.tiles()), dim3(kTile, kDownOfTile), 0, stream>>>(
        As<const decltype(zero)>(from), rows, columns, to, accumulate);
  });
}

}  // namespace trireme::cuda
