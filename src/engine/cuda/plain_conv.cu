#include "engine/cuda/launch.cuh"
#include "engine/cuda/pack.cuh"
#include "engine/cuda/plain_conv.h"
#include "engine/cuda/window.cuh"

namespace trireme::cuda {
namespace {

template <class T>
__global__ void Forward(Window w, int out, size_t size, const T* x, const T* weights, T* y) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.out_height, w.out_width, out);
    const T* image = x + at.sample * w.height * w.width * w.channels;
    const T* kernel = weights + size_t(at.channel) * w.kernel * w.kernel * w.channels;
    double sum = 0;
    ForEachInWindow(w, at.row, at.column, [&](int k, size_t pixel) {
      for (int c = 0; c < w.channels; ++c) {
        sum += double(float(image[pixel * w.channels + c])) *
               double(float(kernel[size_t(k) * w.channels + c]));
      }
    });
    y[i] = T(float(sum));
  });
}

template <class T>
__global__ void GradInput(Window w, int out, size_t size, const T* dy, const T* weights, T* dx) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.height, w.width, w.channels);
    const T* image = dy + at.sample * w.out_height * w.out_width * out;
    const size_t area = size_t(w.kernel) * w.kernel;
    double sum = 0;
    ForEachWindowOver(w, at.row, at.column, [&](int k, size_t window) {
      for (int o = 0; o < out; ++o) {
        sum += double(float(image[window * out + o])) *
               double(float(weights[(o * area + k) * w.channels + at.channel]));
      }
    });
    dx[i] = T(float(sum));
  });
}

template <class T>
__global__ void GradWeights(Window w, int out, size_t samples, size_t size, const T* x, const T* dy,
                            T* d_weights) {
  ForEachItem(size, [=](size_t i) {
    const Place at = PlaceOf(i, w.kernel, w.kernel, w.channels);  // its sample is the output
    double sum = 0;
    for (size_t n = 0; n < samples; ++n) {
      const T* image = x + n * w.height * w.width * w.channels + at.channel;
      const T* grad = dy + n * w.out_height * w.out_width * out + at.sample;
      for (int h = 0; h < w.out_height; ++h) {
        const int row = h * w.stride + at.row - w.padding;
        if (row < 0 || row >= w.height) continue;
        for (int v = 0; v < w.out_width; ++v) {
          const int column = v * w.stride + at.column - w.padding;
          if (column < 0 || column >= w.width) continue;
          sum += double(float(image[(size_t(row) * w.width + column) * w.channels])) *
                 double(float(grad[(size_t(h) * w.out_width + v) * out]));
        }
      }
    }
    d_weights[i] = T(float(sum));
  });
}

}  // namespace

void LaunchPlainConv(cudaStream_t stream, const Window& w, int out, size_t samples, Array x,
                     Array weights, Array y) {
  const size_t size = samples * w.out_height * w.out_width * out;
  WithElement(x.element, [&](auto zero) {
    using T = decltype(zero);
    Forward<<<BlocksFor(size), kThreads, 0, stream>>>(w, out, size, As<const T>(x),
                                                      As<const T>(weights), As<T>(y));
  });
}

void LaunchPlainConvGradInput(cudaStream_t stream, const Window& w, int out, size_t samples,
                              Array dy, Array weights, Array dx) {
  const size_t size = samples * w.height * w.width * w.channels;
  WithElement(dy.element, [&](auto zero) {
    using T = decltype(zero);
    GradInput<<<BlocksFor(size), kThreads, 0, stream>>>(w, out, size, As<const T>(dy),
                                                        As<const T>(weights), As<T>(dx));
  });
}

void LaunchPlainConvGradWeights(cudaStream_t stream, const Window& w, int out, size_t samples,
                                Array x, Array dy, Array d_weights) {
  const size_t size = size_t(out) * w.kernel * w.kernel * w.channels;
  WithElement(x.element, [&](auto zero) {
    using T = decltype(zero);
    GradWeights<<<BlocksFor(size), kThreads, 0, stream>>>(w, out, samples, size, As<const T>(x),
                                                          As<const T>(dy), As<T>(d_weights));
  });
}

}  // namespace trireme::cuda
