#include "engine/cuda/launch.cuh"
#include "engine/cuda/plain_conv.h"
#include "engine/cuda/window.cuh"

namespace trireme::cuda {
namespace {

__global__ void Forward(Window w, int out, size_t size, const float* x, const float* weights,
                        float* y) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.out_height, w.out_width, out);
    const float* image = x + at.sample * w.height * w.width * w.channels;
    const float* kernel = weights + size_t(at.channel) * w.kernel * w.kernel * w.channels;
    double sum = 0;
    ForEachInWindow(w, at.row, at.column, [&](int k, size_t pixel) {
      for (int c = 0; c < w.channels; ++c) {
        sum += double(image[pixel * w.channels + c]) * kernel[size_t(k) * w.channels + c];
      }
    });
    y[i] = float(sum);
  });
}

__global__ void GradInput(Window w, int out, size_t size, const float* dy, const float* weights,
                          float* dx) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.height, w.width, w.channels);
    const float* image = dy + at.sample * w.out_height * w.out_width * out;
    const size_t area = size_t(w.kernel) * w.kernel;
    double sum = 0;
    ForEachWindowOver(w, at.row, at.column, [&](int k, size_t window) {
      for (int o = 0; o < out; ++o) {
        sum += double(image[window * out + o]) * weights[(o * area + k) * w.channels + at.channel];
      }
    });
    dx[i] = float(sum);
  });
}

__global__ void GradWeights(Window w, int out, size_t samples, size_t size, const float* x,
                            const float* dy, float* d_weights) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.kernel, w.kernel, w.channels);  // its sample is the output
    double sum = 0;
    for (size_t n = 0; n < samples; ++n) {
      const float* image = x + n * w.height * w.width * w.channels + at.channel;
      const float* grad = dy + n * w.out_height * w.out_width * out + at.sample;
      for (int h = 0; h < w.out_height; ++h) {
        const int row = h * w.stride + at.row - w.padding;
        if (row < 0 || row >= w.height) continue;
        for (int v = 0; v < w.out_width; ++v) {
          const int column = v * w.stride + at.column - w.padding;
          if (column < 0 || column >= w.width) continue;
          sum += double(image[(size_t(row) * w.width + column) * w.channels]) *
                 grad[(size_t(h) * w.out_width + v) * out];
        }
      }
    }
    d_weights[i] = float(sum);
  });
}

}  // namespace

void LaunchPlainConv(cudaStream_t stream, const Window& w, int out, size_t samples, const float* x,
                     const float* weights, float* y) {
  const size_t size = samples * w.out_height * w.out_width * out;
  Forward<<<BlocksFor(size), kThreads, 0, stream>>>(w, out, size, x, weights, y);
}

void LaunchPlainConvGradInput(cudaStream_t stream, const Window& w, int out, size_t samples,
                              const float* dy, const float* weights, float* dx) {
  const size_t size = samples * w.height * w.width * w.channels;
  GradInput<<<BlocksFor(size), kThreads, 0, stream>>>(w, out, size, dy, weights, dx);
}

void LaunchPlainConvGradWeights(cudaStream_t stream, const Window& w, int out, size_t samples,
                                const float* x, const float* dy, float* d_weights) {
  const size_t size = size_t(out) * w.kernel * w.kernel * w.channels;
  GradWeights<<<BlocksFor(size), kThreads, 0, stream>>>(w, out, samples, size, x, dy, d_weights);
}

}  // namespace trireme::cuda
