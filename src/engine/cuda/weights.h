#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/array.h"

namespace trireme::cuda {

// The libraries want a kernel as [out][kh][kw][in]; in a state and a summand it lies as
// [kh][kw][in][out]. Both are matrices, each the other's transpose.

constexpr int kTile = 64;
constexpr int kRun = 4096;

// A matrix [rows][columns] at `from` of a state is copied to `to` of the copies, or a gradient from
// there into a summand: `turned` as [columns][rows], else as it is. Blocks take a tile of
// kTile x kTile each, or kRun numbers; those of several copies are numbered through.
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

// Tiles [first, first + count) of a list of copies; on the device lie the list, and for each tile
// the index of its copy.
struct MatrixTiles {
  const MatrixCopy* list;
  const int* copy_of_tile;
  int first, count;
};

void LaunchMatrixCopies(cudaStream_t stream, const MatrixTiles& tiles, const float* state,
                        Array copies);

// The other way round, of copies that are turned: summand (+)= gradients.
void LaunchGradientCopies(cudaStream_t stream, const MatrixTiles& tiles, Array copies,
                          float* summand, bool accumulate);

}  // namespace trireme::cuda
