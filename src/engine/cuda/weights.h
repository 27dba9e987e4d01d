#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/array.h"

namespace trireme::cuda {

// The libraries want a kernel as [out][kh][kw][in]; in a state and a summand it lies as
// [kh][kw][in][out]. Both are matrices, each the other's transpose.

constexpr int kTile = 64;
constexpr int kRun = 4096;

// A matrix [rows][columns] at `from` of a state is copied to `to` of the copies: `turned` as
// [columns][rows], else as it is. Blocks take a tile of kTile x kTile each, or kRun numbers; those
// of several copies are numbered through.
struct MatrixCopy {
  size_t from = 0, to = 0;
  int rows = 0, columns = 0;
  bool turned = false;
  int first_tile = 0;
  int tiles() const {
    if (!turned) return int((size() + kRun - 1) / kRun);
    return ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  }
  constexpr size_t size() const { return size_t(rows) * size_t(columns); }
};

// Tiles [first, first + tiles) of the copies; on the device lie their list, and for each tile the
// index of its copy.
void LaunchMatrixCopies(cudaStream_t stream, const MatrixCopy* list, const int* copy_of_tile,
                        int first, int tiles, const float* state, Array copies);

// to[column][row] (+)= from[row][column].
void LaunchTransposeInto(cudaStream_t stream, Array from, int rows, int columns, float* to,
                         bool accumulate);

}  // namespace trireme::cuda
