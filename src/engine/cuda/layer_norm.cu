#include "engine/cuda/block.cuh"
#include "engine/cuda/layer_norm.h"
#include "engine/cuda/pack.cuh"

namespace trireme::cuda {
namespace {

// A block takes a sample at a time; its threads take every kThreads-th value.
template <class F>
__device__ void ForEachSample(size_t samples, const F& f) {
  for (size_t n = blockIdx.x; n < samples; n += gridDim.x) f(n);
}
template <class F>
__device__ void ForEachValue(size_t size, const F& f) {
  for (size_t i = threadIdx.x; i < size; i += kThreads) f(i);
}

// Values of a sample, as float32.
template <class T>
struct Sample {
  T* values;
  __device__ Sample(const Array& array, size_t begin)
      : values(static_cast<T*>(array.data) + begin) {}
  __device__ float operator[](size_t i) const { return float(values[i]); }
  __device__ void Set(size_t i, float value) const { values[i] = T(value); }
};

template <class T>
__global__ void Forward(LayerNorm g) {
  ForEachSample(g.samples, [&](size_t n) {
    const Sample<T> x(g.x, n * g.size), y(g.y, n * g.size);
    float rough = 0;
    ForEachValue(g.size, [&](size_t i) { rough += x[i]; });
    // Need not be exact: what it is off by is summed up as well.
    const float pivot = float(SumBlock(rough) / double(g.size));
    float sum = 0, square = 0;
    ForEachValue(g.size, [&](size_t i) {
      const float off = x[i] - pivot;
      sum += off;
      square = fmaf(off, off, square);
    });
    const double off = SumBlock(sum) / double(g.size);
    const double variance = SumBlock(square) / double(g.size) - off * off;
    const float mean = float(pivot + off);
    const float inv_std = float(1 / sqrt((variance < 0 ? 0 : variance) + double(g.epsilon)));
    if (threadIdx.x == 0) {
      g.mean[n] = mean;
      g.inv_std[n] = inv_std;
    }
    ForEachValue(g.size, [&](size_t i) {
      const float normal = (x[i] - mean) * inv_std;
      y.Set(i, g.weight ? fmaf(normal, g.weight[i], g.bias[i]) : normal);
    });
  });
}

template <class T>
__global__ void Backward(LayerNormGrad g) {
  ForEachSample(g.samples, [&](size_t n) {
    const size_t begin = n * g.size;
    const Sample<T> x(g.x, begin), dy(g.dy, begin), dx(g.dx, begin);
    const float mean = g.mean[n], inv_std = g.inv_std[n];
    const auto d_normal = [&](size_t i) { return g.weight ? dy[i] * g.weight[i] : dy[i]; };
    float sum = 0, product = 0;
    ForEachValue(g.size, [&](size_t i) {
      const float d = d_normal(i);
      sum += d;
      product = fmaf(d, (x[i] - mean) * inv_std, product);
    });
    const float level = float(SumBlock(sum) / double(g.size));
    const float slope = float(SumBlock(product) / double(g.size));
    ForEachValue(g.size, [&](size_t i) {
      const float normal = (x[i] - mean) * inv_std;
      dx.Set(i, inv_std * (d_normal(i) - level - normal * slope));
    });
  });
}

template <class T>
__global__ void BackwardParameters(LayerNormGrad g) {
  const Sample<T> x(g.x, 0), dy(g.dy, 0);
  ForEachItem(g.size, [=](size_t i) {
    double weight = 0, bias = 0;
    for (size_t n = 0; n < g.samples; ++n) {
      const size_t at = n * g.size + i;
      weight += dy[at] * ((x[at] - g.mean[n]) * g.inv_std[n]);
      bias += dy[at];
    }
    g.d_weight[i] = (g.accumulate ? g.d_weight[i] : 0) + float(weight);
    g.d_bias[i] = (g.accumulate ? g.d_bias[i] : 0) + float(bias);
  });
}

unsigned BlocksForSamples(size_t samples) { return unsigned(samples < 65536 ? samples : 65536); }

}  // namespace

void LaunchLayerNorm(cudaStream_t stream, const LayerNorm& norm) {
  WithElement(norm.x.element, [&](auto zero) {
    Forward<decltype(zero)><<<BlocksForSamples(norm.samples), kThreads, 0, stream>>>(norm);
  });
}

void LaunchLayerNormGrad(cudaStream_t stream, const LayerNormGrad& grad) {
  WithElement(grad.x.element, [&](auto zero) {
    using T = decltype(zero);
    Backward<T><<<BlocksForSamples(grad.samples), kThreads, 0, stream>>>(grad);
    if (!grad.weight) return;
    BackwardParameters<T><<<BlocksFor(grad.size), kThreads, 0, stream>>>(grad);
  });
}

}  // namespace trireme::cuda
