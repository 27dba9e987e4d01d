#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/array.h"

namespace trireme::cuda {

constexpr int kColumnThreads = 512;  // of a block

// Rows of `channels` values, summed up per channel. Blocks take a chunk of rows of some channels
// each and leave sums in float; the block that ends last adds them up in double, always in the same
// order. So sums are a function of the values, wherever they are computed.
struct Columns {
  // With `eight` a thread takes eight channels, as many as a byte of a mask stands for.
  Columns(size_t num_rows, int num_channels, Element held_as, bool eight = false)
      : rows(num_rows), channels(num_channels), element(held_as) {
    const int whole = IsNarrow(element) || eight ? 8 : 4;
    pack = channels % whole == 0 ? whole : 1;
    width = (pack == 1 ? 32 : 8) * pack;
    groups = (channels + width - 1) / width;
    const size_t most = MostChunks();
    chunk = (rows + most - 1) / most;
    if (chunk < kLeast) chunk = kLeast;
    chunks = int((rows + chunk - 1) / chunk);
  }

  size_t rows;
  int channels;
  Element element;  // of the values
  int pack;         // channels that a thread takes
  int width;        // and a block
  int groups;       // blocks beside each other
  size_t chunk;     // rows of one; the last may be shorter
  int chunks;

  // Floats that the chunks leave, a multiple of 64; fewer rows need no more.
  size_t parts() const { return size_t(groups) * MostChunks() * 2 * size_t(width); }

 private:
  static constexpr size_t kLeast = 256;
  size_t MostChunks() const {
    constexpr size_t kBlocks = 264;  // two for each processor of an H200
    size_t most = kBlocks / size_t(groups);
    const size_t least_chunks = (rows + kLeast - 1) / kLeast;
    most = most < least_chunks ? most : least_chunks;
    return most < 1 ? 1 : most;
  }
};

// Where sums over columns leave what blocks find. `counters` has one for each group, all zero
// before and after.
struct ColumnScratch {
  float* parts;
  unsigned* counters;
};

// sums[c] (+)= sum over the rows of x, which begin `stride` numbers apart; 0: one after the other.
void LaunchSumColumns(cudaStream_t stream, const Columns& columns, const void* x,
                      const ColumnScratch& scratch, float* sums, bool accumulate,
                      size_t stride = 0);

}  // namespace trireme::cuda
