#include "engine/cuda/activations.h"
#include "engine/cuda/map.cuh"
#include "engine/cuda/rows.cuh"

namespace trireme::cuda {
namespace {

template <Activation kF>
struct Forward {
  __device__ float operator()(size_t, float x) const {
    if constexpr (kF == Activation::kRelu) return x > 0 ? x : 0;
    if constexpr (kF == Activation::kSigmoid) return 1 / (1 + expf(-x));
    if constexpr (kF == Activation::kTanh) return tanhf(x);
    if constexpr (kF == Activation::kGelu) return x * normcdff(x);
    return x;
  }
};

template <Activation kF>
struct Backward {
  __device__ float operator()(size_t, float y, float dy) const {
    if constexpr (kF == Activation::kRelu) return y > 0 ? dy : 0;
    if constexpr (kF == Activation::kSigmoid) return dy * y * (1 - y);
    if constexpr (kF == Activation::kTanh) return dy * (1 - y * y);
    if constexpr (kF == Activation::kGelu) {
      const float x = y, density = 0.398942280f * expf(-0.5f * x * x);
      return dy * fmaf(x, density, normcdff(x));
    }
    return dy;
  }
};

template <Activation kF, int kN, class T>
struct AddBias {
  const float* bias;
  const T* y;
  size_t channels;
  __device__ Floats<kN> operator()(size_t row, unsigned i) const {
    Floats<kN> values = Load<kN>(y + row * channels + i);
    const Floats<kN> added = Load<kN>(bias + i);
#pragma unroll
    for (int k = 0; k < kN; ++k) values[k] = Forward<kF>()(0, values[k] + added[k]);
    return values;
  }
};

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
    case Activation::kGelu:
      return launch.template operator()<Activation::kGelu>();
  }
}

}  // namespace

void LaunchActivation(cudaStream_t stream, Activation f, Array x, Array y, size_t size) {
  WithElement(x.element, [&](auto zero) {
    using T = decltype(zero);
    With(f, [&]<Activation kF>() { Map(stream, size, Forward<kF>(), As<T>(y), As<const T>(x)); });
  });
}

void LaunchActivationGrad(cudaStream_t stream, Activation f, Array y, Array dy, Array dx,
                          size_t size) {
  WithElement(dy.element, [&](auto zero) {
    using T = decltype(zero);
    With(f, [&]<Activation kF>() {
      Map(stream, size, Backward<kF>(), As<T>(dx), As<const T>(y), As<const T>(dy));
    });
  });
}

void LaunchBiasActivation(cudaStream_t stream, Activation f, const float* bias, Array y,
                          size_t rows, int channels) {
  if (!bias) return LaunchActivation(stream, f, y, y, rows * size_t(channels));
  WithPack(y.element, channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    With(f, [&]<Activation kF>() {
      MapRows<kN>(stream, rows, size_t(channels),
                  AddBias<kF, kN, T>{bias, As<const T>(y), size_t(channels)}, As<T>(y));
    });
  });
}

}  // namespace trireme::cuda
