#include "engine/cuda/mask.cuh"
#include "engine/cuda/rows.cuh"
#include "engine/cuda/tokens.h"

namespace trireme::cuda {
namespace {

size_t SizeOf(const TokenSizes& sizes) { return size_t(sizes.tokens) * size_t(sizes.channels); }

template <int kN, class T>
struct TokenThenX {
  const float* token;
  const T* x;
  unsigned channels, size;  // of x
  __device__ Floats<kN> operator()(size_t n, unsigned i) const {
    return i < channels ? Load<kN>(token + i) : Load<kN>(x + n * size + (i - channels));
  }
};

// Of each sample of x, which has `size` numbers, those from `begin` on.
template <int kN, class T>
struct PartOf {
  const T* x;
  unsigned begin, size;
  __device__ Floats<kN> operator()(size_t n, unsigned i) const {
    return Load<kN>(x + n * size + begin + i);
  }
};

template <int kN, class T>
struct DyThenZeros {
  const T* dy;
  unsigned channels;
  __device__ Floats<kN> operator()(size_t n, unsigned i) const {
    return i < channels ? Load<kN>(dy + n * channels + i) : Floats<kN>{};
  }
};

template <int kN, class T>
struct XAndPositions {
  const T* x;
  const float* positions;
  unsigned size;
  __device__ Floats<kN> operator()(size_t n, unsigned i) const {
    Floats<kN> sum = Load<kN>(x + n * size + i);
    const Floats<kN> added = Load<kN>(positions + i);
#pragma unroll
    for (int k = 0; k < kN; ++k) sum[k] += added[k];
    return sum;
  }
};

template <int kN, class T>
struct KeptSamples {
  const T* x;
  Mask mask;
  unsigned size;
  __device__ Floats<kN> operator()(size_t n, unsigned i) const {
    if (!Keeps(mask, n)) return {};
    Floats<kN> kept = Load<kN>(x + n * size + i);
#pragma unroll
    for (int k = 0; k < kN; ++k) kept[k] *= mask.scale;
    return kept;
  }
};

}  // namespace

void LaunchClassToken(cudaStream_t stream, const TokenSizes& of_y, const float* token, Array x,
                      Array y) {
  WithPack(x.element, of_y.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const unsigned channels = unsigned(of_y.channels), size = unsigned(SizeOf(of_y));
    MapRows<kN>(stream, of_y.samples, size,
                TokenThenX<kN, T>{token, As<const T>(x), channels, size - channels}, As<T>(y));
  });
}

void LaunchWithoutFirstToken(cudaStream_t stream, const TokenSizes& of_dy, Array dy, Array dx) {
  WithPack(dy.element, of_dy.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const unsigned channels = unsigned(of_dy.channels), size = unsigned(SizeOf(of_dy));
    MapRows<kN>(stream, of_dy.samples, size - channels,
                PartOf<kN, T>{As<const T>(dy), channels, size}, As<T>(dx));
  });
}

void LaunchFirstToken(cudaStream_t stream, const TokenSizes& of_x, Array x, Array y) {
  WithPack(x.element, of_x.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    MapRows<kN>(stream, of_x.samples, size_t(of_x.channels),
                PartOf<kN, T>{As<const T>(x), 0, unsigned(SizeOf(of_x))}, As<T>(y));
  });
}

void LaunchFirstTokenGrad(cudaStream_t stream, const TokenSizes& of_dx, Array dy, Array dx) {
  WithPack(dy.element, of_dx.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    MapRows<kN>(stream, of_dx.samples, SizeOf(of_dx),
                DyThenZeros<kN, T>{As<const T>(dy), unsigned(of_dx.channels)}, As<T>(dx));
  });
}

void LaunchPositions(cudaStream_t stream, const TokenSizes& sizes, const float* positions, Array x,
                     Array y) {
  WithPack(x.element, int(SizeOf(sizes)), [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    const size_t size = SizeOf(sizes);
    MapRows<kN>(stream, sizes.samples, size,
                XAndPositions<kN, T>{As<const T>(x), positions, unsigned(size)}, As<T>(y));
  });
}

void LaunchStochasticDepth(cudaStream_t stream, const Mask& mask, size_t samples, int sample_size,
                           Array x, Array y) {
  WithPack(x.element, sample_size, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    MapRows<kN>(stream, samples, size_t(sample_size),
                KeptSamples<kN, T>{As<const T>(x), mask, unsigned(sample_size)}, As<T>(y));
  });
}

}  // namespace trireme::cuda
