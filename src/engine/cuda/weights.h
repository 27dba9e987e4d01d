#pragma once
#include <cuda_runtime.h>

#include <cstddef>

namespace trireme::cuda {

// The libraries want a kernel as [out][kh][kw][in]; in a state and a summand it lies as
// [kh][kw][in][out]. Both are matrices, each the other's transpose.

constexpr int kTile = 32;

// A matrix [rows][columns] at `from` of a state becomes [columns][rows] at `to` of the copies.
// Blocks take a tile of kTile x kTile each; those of several transpositions are numbered through.
struct Transposition {
  size_t from = 0, to = 0;
  int rows = 0, columns = 0;
  int first_tile = 0;
  int tiles() const { return ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile); }
};

// Tiles [first, first + tiles) of the transpositions, which lie on the device in order.
void LaunchTranspositions(cudaStream_t stream, const Transposition* list, int size, int first,
                          int tiles, const float* state, float* copies);

// to[column][row] (+)= from[row][column].
void LaunchTransposeInto(cudaStream_t stream, const float* from, int rows, int columns, float* to,
                         bool accumulate);

}  // namespace trireme::cuda
