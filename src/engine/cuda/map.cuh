#pragma once
#include "engine/cuda/launch.cuh"
#include "engine/cuda/pack.cuh"

namespace trireme::cuda {

template <int kN, class F, class T, class... In>
__device__ void MapPack(size_t at, const F& f, T* y, const In*... in) {
  const auto apply = [&](const auto&... loaded) {
    Floats<kN> made;
#pragma unroll
    for (int i = 0; i < kN; ++i) made[i] = f(at + i, loaded[i]...);
    return made;
  };
  Store<kN>(y + at, apply(Load<kN>(in + at)...));
}

template <int kN, class F, class T, class... In>
__global__ void MapAll(size_t size, F f, T* y, const In*... in) {
  const size_t packs = size / kN;
  ForEachItem(packs, [&](size_t p) { MapPack<kN>(p * kN, f, y, in...); });
  const size_t rest = packs * kN + size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (rest < size) MapPack<1>(rest, f, y, in...);
}

// y[i] = f(i, in[i]...), where y may be one of the inputs.
template <class F, class T, class... In>
void Map(cudaStream_t stream, size_t size, const F& f, T* y, const In*... in) {
  constexpr bool kNarrow = sizeof(T) == 2 || (... || (sizeof(In) == 2));
  constexpr int kN = kNarrow ? 8 : 4;
  const size_t packs = size / kN;
  MapAll<kN><<<BlocksFor(packs > 0 ? packs : 1), kThreads, 0, stream>>>(size, f, y, in...);
}

}  // namespace trireme::cuda
