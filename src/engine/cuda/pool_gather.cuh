#pragma once
#include "engine/cuda/pack.cuh"
#include "engine/cuda/window.cuh"

namespace trireme::cuda {

// What reaches kN channels of a pixel from the windows over it that chose it: the gradient of a
// max_pool. `channel` is the first of them.
template <int kN, class T>
__device__ __forceinline__ Floats<kN> GatherFromWindows(const Window& w, const unsigned char* index,
                                                        const T* dy, size_t sample, int row,
                                                        int column, int channel) {
  const size_t first = sample * w.out_height * w.out_width * w.channels + size_t(channel);
  Floats<kN> sum = {};
  ForEachWindowOver(w, row, column, [&](int k, size_t window) {
    const size_t out = first + window * w.channels;
    const Bytes<kN> places = LoadBytes<kN>(index + out);
    const Floats<kN> values = Load<kN>(dy + out);
#pragma unroll
    for (int c = 0; c < kN; ++c) sum[c] += places.values[c] == k ? values[c] : 0;
  });
  return sum;
}

}  // namespace trireme::cuda
