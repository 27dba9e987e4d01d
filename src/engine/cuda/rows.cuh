#pragma once
#include "engine/cuda/launch.cuh"
#include "engine/cuda/pack.cuh"

namespace trireme::cuda {

template <int kN, class F, class T>
__global__ void MapRowsAll(size_t packs, unsigned of_row, F f, T* y) {
  ForEachItem(packs, [&](size_t p) {
    // Divisions of 64 bits take long, and few arrays need them.
    const size_t row = p >> 32 ? p / of_row : unsigned(p) / of_row;
    Store<kN>(y + p * kN, f(row, unsigned(p - row * of_row) * kN));
  });
}

// y[row][i .. i + kN) = f(row, i) for all packs of `rows` rows of `size` numbers. What f reads of y
// is the same pack.
template <int kN, class F, class T>
void MapRows(cudaStream_t stream, size_t rows, size_t size, const F& f, T* y) {
  const size_t packs = rows * size / kN;
  MapRowsAll<kN><<<BlocksFor(packs), kThreads, 0, stream>>>(packs, unsigned(size / kN), f, y);
}

}  // namespace trireme::cuda
