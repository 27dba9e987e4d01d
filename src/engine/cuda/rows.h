#pragma once
#include <cuda_runtime.h>

#include <cstddef>

namespace trireme::cuda {

// Rows of `channels` values, summed up per channel: blocks take a chunk of rows each, in float, and
// what they find is added in double and in the chunks' order. So sums are a function of the values.
struct Rows {
  Rows(size_t num_rows, int num_channels) : rows(num_rows), channels(num_channels) {
    constexpr size_t kLeast = 64, kMostChunks = 512;
    chunk = (rows + kMostChunks - 1) / kMostChunks;
    if (chunk < kLeast) chunk = kLeast;
    chunks = int((rows + chunk - 1) / chunk);
  }

  size_t rows;
  int channels;
  size_t chunk;  // rows of one; the last may be shorter
  int chunks;

  // Doubles for `sums` sums per channel of every chunk.
  size_t parts(int sums) const { return size_t(chunks) * size_t(sums) * size_t(channels); }
};

// totals[i] = sum of parts[chunk][i] over the chunks, for i < length; then totals[length] = rows.
void LaunchSumParts(cudaStream_t stream, const Rows& rows, int length, const double* parts,
                    double* totals);

// sums[c] (+)= sum over the rows of x. `scratch` holds SumRowsDoubles doubles.
size_t SumRowsDoubles(const Rows& rows);
void LaunchSumRows(cudaStream_t stream, const Rows& rows, const float* x, double* scratch,
                   float* sums, bool accumulate);

}  // namespace trireme::cuda
