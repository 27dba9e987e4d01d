#include "engine/cuda/activations.h"
#include "engine/cuda/launch.cuh"

namespace trireme::cuda {
namespace {

template <Activation kF>
__device__ float Apply(float x) {
  if constexpr (kF == Activation::kRelu) return x > 0 ? x : 0;
  if constexpr (kF == Activation::kSigmoid) return 1 / (1 + expf(-x));
  if constexpr (kF == Activation::kTanh) return tanhf(x);
  return x;
}

template <Activation kF>
__device__ float Slope(float y, float dy) {
  if constexpr (kF == Activation::kRelu) return y > 0 ? dy : 0;
  if constexpr (kF == Activation::kSigmoid) return dy * y * (1 - y);
  if constexpr (kF == Activation::kTanh) return dy * (1 - y * y);
  return dy;
}

template <Activation kF>
__global__ void Forward(const float* x, float* y, size_t size) {
  ForEachItem(size, [=](size_t i) { y[i] = Apply<kF>(x[i]); });
}

template <Activation kF>
__global__ void Backward(const float* y, const float* dy, float* dx, size_t size) {
  ForEachItem(size, [=](size_t i) { dx[i] = Slope<kF>(y[i], dy[i]); });
}

template <Activation kF>
__global__ void AddBias(const float* bias, float* y, size_t size, int channels) {
  ForEachItem(
      size, [=](size_t i) { y[i] = Apply<kF>(bias ? y[i] + bias[i % unsigned(channels)] : y[i]); });
}

// Calls launch with the activation as a constant.
template <class F>
void With(Activation f, const F& launch) {
  switch (f) {
    case Activation::kNone:
      return launch.template operator()<Activation::kNone>();
    case Activation::kRelu:
      return launch.template operator()<Activation::kRelu>();
    case Activation::kSigmoid:
      return launch.template operator()<Activation::kSigmoid>();
    case Activation::kTanh:
      return launch.template operator()<Activation::kTanh>();
  }
}

}  // namespace

void LaunchActivation(cudaStream_t stream, Activation f, const float* x, float* y, size_t size) {
  With(f,
       [&]<Activation kF>() { Forward<kF><<<BlocksFor(size), kThreads, 0, stream>>>(x, y, size); });
}

void LaunchActivationGrad(cudaStream_t stream, Activation f, const float* y, const float* dy,
                          float* dx, size_t size) {
  With(f, [&]<Activation kF>() {
    Backward<kF><<<BlocksFor(size), kThreads, 0, stream>>>(y, dy, dx, size);
  });
}

void LaunchBiasActivation(cudaStream_t stream, Activation f, const float* bias, float* y,
                          size_t rows, int channels) {
  const size_t size = rows * size_t(channels);
  With(f, [&]<Activation kF>() {
    AddBias<kF><<<BlocksFor(size), kThreads, 0, stream>>>(bias, y, size, channels);
  });
}

}  // namespace trireme::cuda
