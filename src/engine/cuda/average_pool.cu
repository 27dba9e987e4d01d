#include "engine/cuda/launch.cuh"
#include "engine/cuda/pools.h"
#include "engine/cuda/window.cuh"

namespace trireme::cuda {
namespace {

__global__ void AveragePool(Window w, size_t size, const float* x, float* y) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.out_height, w.out_width, w.channels);
    const float* image = x + at.sample * w.height * w.width * w.channels + at.channel;
    float sum = 0;
    ForEachInWindow(w, at.row, at.column,
                    [&](int, size_t pixel) { sum += image[pixel * w.channels]; });
    y[i] = sum / float(w.kernel * w.kernel);
  });
}

__global__ void AveragePoolGrad(Window w, size_t size, const float* dy, float* dx) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.height, w.width, w.channels);
    const size_t first = at.sample * w.out_height * w.out_width * w.channels + at.channel;
    float sum = 0;
    ForEachWindowOver(w, at.row, at.column,
                      [&](int, size_t window) { sum += dy[first + window * w.channels]; });
    dx[i] = sum / float(w.kernel * w.kernel);
  });
}

}  // namespace

void LaunchAveragePool(cudaStream_t stream, const Window& w, size_t samples, const float* x,
                       float* y) {
  const size_t size = samples * w.out_height * w.out_width * w.channels;
  AveragePool<<<BlocksFor(size), kThreads, 0, stream>>>(w, size, x, y);
}

void LaunchAveragePoolGrad(cudaStream_t stream, const Window& w, size_t samples, const float* dy,
                           float* dx) {
  const size_t size = samples * w.height * w.width * w.channels;
  AveragePoolGrad<<<BlocksFor(size), kThreads, 0, stream>>>(w, size, dy, dx);
}

}  // namespace trireme::cuda
