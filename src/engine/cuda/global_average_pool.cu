#include "engine/cuda/launch.cuh"
#include "engine/cuda/pools.h"

namespace trireme::cuda {
namespace {

__global__ void GlobalAveragePool(const float* x, float* y, size_t size, int pixels, int channels) {
  ForEachItem(size, [=](size_t i) {
    const size_t sample = i / unsigned(channels), c = i % unsigned(channels);
    const float* from = x + sample * pixels * channels + c;
    float sum = 0;
    for (int p = 0; p < pixels; ++p) sum += from[size_t(p) * channels];
    y[i] = sum / float(pixels);
  });
}

__global__ void GlobalAveragePoolGrad(const float* dy, float* dx, size_t size, int pixels,
                                      int channels) {
  ForEachItem(size, [=](size_t i) {
    const size_t c = i % unsigned(channels), sample = i / unsigned(channels) / unsigned(pixels);
    dx[i] = dy[sample * channels + c] / float(pixels);
  });
}

}  // namespace

void LaunchGlobalAveragePool(cudaStream_t stream, const float* x, float* y, size_t samples,
                             int pixels, int channels) {
  const size_t size = samples * channels;
  GlobalAveragePool<<<BlocksFor(size), kThreads, 0, stream>>>(x, y, size, pixels, channels);
}

void LaunchGlobalAveragePoolGrad(cudaStream_t stream, const float* dy, float* dx, size_t samples,
                                 int pixels, int channels) {
  const size_t size = samples * pixels * channels;
  GlobalAveragePoolGrad<<<BlocksFor(size), kThreads, 0, stream>>>(dy, dx, size, pixels, channels);
}

}  // namespace trireme::cuda
