#include "engine/cuda/fold.h"
#include "engine/cuda/launch.cuh"
#include "engine/cuda/pack.cuh"
#include "engine/cuda/window.cuh"

namespace trireme::cuda {
namespace {

constexpr int kEight = 8;

// Channel k of a cell: the channel of the image and where in the cell; none: it is zero.
struct Corner {
  int row, column, channel;
  bool exists;
};
__device__ Corner CornerOf(const Fold& f, int k) {
  const int corner = k / f.window.channels;
  return {corner / 2, corner % 2, k % f.window.channels, corner < 4};
}

// A thread takes 8 channels of a cell.
template <class From, class To>
__global__ void FoldImages(Fold f, size_t packs, const From* x, To* y) {
  const Window& w = f.window;
  ForEachItem(packs, [=](size_t i) {
    const Place at = PlaceOf(i, f.height(), f.width(), f.channels / kEight);
    Floats<kEight> made = {};
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      const Corner corner = CornerOf(f, at.channel * kEight + k);
      const int row = 2 * (at.row - f.before) + corner.row;
      const int column = 2 * (at.column - f.before) + corner.column;
      const bool inside =
          corner.exists && row >= 0 && row < w.height && column >= 0 && column < w.width;
      if (!inside) continue;
      made[k] =
          float(x[((at.sample * w.height + row) * w.width + column) * w.channels + corner.channel]);
    }
    Store<kEight>(y + i * kEight, made);
  });
}

// Of a weight of the folded window: where it lies among the others, or nowhere.
__device__ bool FindWeight(const Fold& f, int out, size_t i, size_t& place) {
  const Place at = PlaceOf(i, f.kernel, f.kernel, f.channels);  // its sample is the output
  const Corner corner = CornerOf(f, at.channel);
  const int row = 2 * (at.row - f.before) + corner.row + f.window.padding;
  const int column = 2 * (at.column - f.before) + corner.column + f.window.padding;
  const int kernel = f.window.kernel;
  if (!corner.exists || row < 0 || row >= kernel || column < 0 || column >= kernel) return false;
  place = ((size_t(row) * kernel + column) * f.window.channels + corner.channel) * out + at.sample;
  return true;
}

template <class To>
__global__ void FoldWeights(Fold f, int out, const float* weights, To* folded) {
  ForEachItem(f.weights(out), [=](size_t i) {
    size_t place = 0;
    folded[i] = To(FindWeight(f, out, i, place) ? weights[place] : 0.0f);
  });
}

template <class From>
__global__ void UnfoldGradient(Fold f, int out, const From* folded, float* gradient,
                               bool accumulate) {
  ForEachItem(f.weights(out), [=](size_t i) {
    size_t place = 0;
    if (!FindWeight(f, out, i, place)) return;
    gradient[place] = (accumulate ? gradient[place] : 0) + float(folded[i]);
  });
}

}  // namespace

std::optional<Fold> FoldOf(const Window& w) {
  constexpr int kFew = 4;
  if (w.stride != 2 || w.channels > kFew || w.kernel <= w.padding) return std::nullopt;
  Fold fold{.window = w, .before = (w.padding + 1) / 2};
  fold.kernel = fold.before + (w.kernel - 1 - w.padding) / 2 + 1;
  fold.channels = (4 * w.channels + kEight - 1) / kEight * kEight;
  return fold;
}

void LaunchFoldImages(cudaStream_t stream, const Fold& fold, size_t samples, Array x,
                      Array folded) {
  const size_t packs = samples * fold.image() / kEight;
  WithElement(x.narrow, [&](auto from) {
    WithElement(folded.narrow, [&](auto to) {
      FoldImages<<<BlocksFor(packs), kThreads, 0, stream>>>(
          fold, packs, As<const decltype(from)>(x), As<decltype(to)>(folded));
    });
  });
}

void LaunchFoldWeights(cudaStream_t stream, const Fold& fold, int out, const float* weights,
                       Array folded) {
  WithElement(folded.narrow, [&](auto zero) {
    FoldWeights<<<BlocksFor(fold.weights(out)), kThreads, 0, stream>>>(fold, out, weights,
                                                                       As<decltype(zero)>(folded));
  });
}

void LaunchUnfoldGradient(cudaStream_t stream, const Fold& fold, int out, Array folded,
                          float* gradient, bool accumulate) {
  WithElement(folded.narrow, [&](auto zero) {
    UnfoldGradient<<<BlocksFor(fold.weights(out)), kThreads, 0, stream>>>(
        fold, out, As<const decltype(zero)>(folded), gradient, accumulate);
  });
}

}  // namespace trireme::cuda
