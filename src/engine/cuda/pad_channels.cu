#include "engine/cuda/launch.cuh"
#include "engine/cuda/pools.h"
#include "engine/cuda/window.cuh"

namespace trireme::cuda {
namespace {

__global__ void PadChannels(Window w, int padded, size_t size, const float* x, float* y) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.out_height, w.out_width, padded);
    const size_t row = at.sample * w.height + size_t(at.row) * w.stride;
    const size_t pixel = row * w.width + size_t(at.column) * w.stride;
    y[i] = at.channel < w.channels ? x[pixel * w.channels + at.channel] : 0.0f;
  });
}

__global__ void PadChannelsGrad(Window w, int padded, size_t size, const float* dy, float* dx) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.height, w.width, w.channels);
    const bool taken = at.row % w.stride == 0 && at.column % w.stride == 0;
    const size_t row = at.sample * w.out_height + at.row / w.stride;
    const size_t pixel = row * w.out_width + at.column / w.stride;
    dx[i] = taken ? dy[pixel * padded + at.channel] : 0.0f;
  });
}

}  // namespace

void LaunchPadChannels(cudaStream_t stream, const Window& w, int padded, size_t samples,
                       const float* x, float* y) {
  const size_t size = samples * w.out_height * w.out_width * padded;
  PadChannels<<<BlocksFor(size), kThreads, 0, stream>>>(w, padded, size, x, y);
}

void LaunchPadChannelsGrad(cudaStream_t stream, const Window& w, int padded, size_t samples,
                           const float* dy, float* dx) {
  const size_t size = samples * w.height * w.width * w.channels;
  PadChannelsGrad<<<BlocksFor(size), kThreads, 0, stream>>>(w, padded, size, dy, dx);
}

}  // namespace trireme::cuda
