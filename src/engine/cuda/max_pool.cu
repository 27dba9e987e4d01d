#include "engine/cuda/launch.cuh"
#include "engine/cuda/pools.h"
#include "engine/cuda/window.cuh"

namespace trireme::cuda {
namespace {

__global__ void MaxPool(Window w, size_t size, const float* x, float* y, uint8_t* index) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.out_height, w.out_width, w.channels);
    const float* image = x + at.sample * w.height * w.width * w.channels + at.channel;
    float largest = 0;
    int where = -1;
    ForEachInWindow(w, at.row, at.column, [&](int k, size_t pixel) {
      const float value = image[pixel * w.channels];
      if (where >= 0 && value <= largest) return;  // the first maximum wins
      largest = value;
      where = k;
    });
    y[i] = largest;
    index[i] = uint8_t(where);
  });
}

__global__ void MaxPoolGrad(Window w, size_t size, const uint8_t* index, const float* dy,
                            float* dx) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.height, w.width, w.channels);
    const size_t first = at.sample * w.out_height * w.out_width * w.channels + at.channel;
    float sum = 0;
    ForEachWindowOver(w, at.row, at.column, [&](int k, size_t window) {
      const size_t out = first + window * w.channels;
      if (index[out] == k) sum += dy[out];
    });
    dx[i] = sum;
  });
}

}  // namespace

void LaunchMaxPool(cudaStream_t stream, const Window& w, size_t samples, const float* x, float* y,
                   uint8_t* index) {
  const size_t size = samples * w.out_height * w.out_width * w.channels;
  MaxPool<<<BlocksFor(size), kThreads, 0, stream>>>(w, size, x, y, index);
}

void LaunchMaxPoolGrad(cudaStream_t stream, const Window& w, size_t samples, const uint8_t* index,
                       const float* dy, float* dx) {
  const size_t size = samples * w.height * w.width * w.channels;
  MaxPoolGrad<<<BlocksFor(size), kThreads, 0, stream>>>(w, size, index, dy, dx);
}

}  // namespace trireme::cuda
