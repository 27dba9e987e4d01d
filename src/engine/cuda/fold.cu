#include "engine/cuda/fold.h"
#include "engine/cuda/launch.cuh"
#include "engine/cuda/pack.cuh"
#include "engine/cuda/window.cuh"

namespace trireme::cuda {
namespace {

constexpr int kFew = 4;  // channels of an image, at most

// A block takes up to kCells cells beside each other: their pixels come to shared memory row by row
// and leave it cell by cell, so that both ways go along the memory.
constexpr int kCells = 64;

template <int kCell, class From, class To>
__global__ void __launch_bounds__(kThreads) FoldImages(Fold f, const From* x, To* folded) {
  constexpr int kPad = 8;  // rows begin in different banks
  __shared__ float shared[kCell][kCells * kCell * kFew + kPad];
  const Window& w = f.window;
  const Place at = PlaceOf(blockIdx.x, f.height(), (f.width() + kCells - 1) / kCells, 1);
  const int first = at.column * kCells, run = kCell * w.channels;  // values of a cell's row
  const int cells = f.width() - first < kCells ? f.width() - first : kCells;
  const int before = run * (first - f.before), across = w.width * w.channels;
  for (int r = 0; r < kCell; ++r) {
    const int row = kCell * (at.row - f.before) + r;
    const From* const from = x + (at.sample * w.height + row) * across;  // if it is inside
    for (int k = int(threadIdx.x); k < cells * run; k += kThreads) {
      const int place = before + k;
      const bool inside = row >= 0 && row < w.height && place >= 0 && place < across;
      shared[r][k] = inside ? float(from[place]) : 0;
    }
  }
  __syncthreads();
  constexpr int kN = kPack<To>;
  const int packs = f.channels / kN;
  To* const to = folded + ((at.sample * f.height() + at.row) * f.width() + first) * f.channels;
  for (int i = int(threadIdx.x); i < cells * packs; i += kThreads) {
    const int begin = i % packs * kN, cell = i / packs * run;
    int r = begin / run, place = begin % run;
    Floats<kN> made;
#pragma unroll
    for (int k = 0; k < kN; ++k) {
      made[k] = r < kCell ? shared[r][cell + place] : 0;
      if (++place == run) ++r, place = 0;
    }
    Store<kN>(to + size_t(i) * kN, made);
  }
}

// Of a weight of the folded window: where it lies among the others, or nowhere.
__device__ bool FindWeight(const Fold& f, int out, size_t i, size_t& place) {
  const Window& w = f.window;
  const Place at = PlaceOf(i, f.kernel, f.kernel, f.channels);  // its sample is the output
  const int result = int(at.sample) / out, corner = at.channel / w.channels;
  if (corner >= f.cell * f.cell) return false;
  const int row =
      f.cell * (at.row - f.before) + corner / f.cell - w.stride * (result / f.results) + w.padding;
  const int column = f.cell * (at.column - f.before) + corner % f.cell -
                     w.stride * (result % f.results) + w.padding;
  if (row < 0 || row >= w.kernel || column < 0 || column >= w.kernel) return false;
  const size_t tap = size_t(row) * w.kernel + column;
  place = (tap * w.channels + at.channel % w.channels) * out + int(at.sample) % out;
  return true;
}

template <class To>
__global__ void FoldWeights(Fold f, int out, const float* weights, To* folded) {
  ForEachItem(f.weights(out), [=](size_t i) {
    size_t place = 0;
    folded[i] = To(FindWeight(f, out, i, place) ? weights[place] : 0.0f);
  });
}

// A thread takes a weight: each result of a cell has a gradient for it.
template <class From>
__global__ void UnfoldGradient(Fold f, int out, size_t weights, const From* folded, float* gradient,
                               bool accumulate) {
  const Window& w = f.window;
  ForEachItem(weights, [=](size_t i) {
    const Place at = PlaceOf(i / unsigned(out), w.kernel, w.kernel, w.channels);
    float sum = accumulate ? gradient[i] : 0;
    for (int result = 0; result < f.results * f.results; ++result) {
      const int row = at.row + w.stride * (result / f.results) - w.padding + f.cell * f.before;
      const int column =
          at.column + w.stride * (result % f.results) - w.padding + f.cell * f.before;
      const int corner = row % f.cell * f.cell + column % f.cell;
      const size_t of_result = size_t(result) * out + i % unsigned(out);
      const size_t pixel = (of_result * f.kernel + row / f.cell) * f.kernel + column / f.cell;
      sum += float(folded[pixel * f.channels + corner * w.channels + at.channel]);
    }
    gradient[i] = sum;
  });
}

}  // namespace

std::optional<Fold> FoldOf(const Window& w, bool in_cells) {
  if (w.stride != 2 || w.channels > kFew || w.kernel <= w.padding) return std::nullopt;
  Fold f{.window = w, .cell = in_cells ? 4 : 2, .results = in_cells ? 2 : 1};
  const int last = w.stride * (f.results - 1) + w.kernel - 1 - w.padding;  // pixel of a window
  f.before = (w.padding + f.cell - 1) / f.cell;
  f.kernel = f.before + last / f.cell + 1;
  const int whole = in_cells ? 32 : 8;
  f.channels = (f.cell * f.cell * w.channels + whole - 1) / whole * whole;
  return f;
}

void LaunchFoldImages(cudaStream_t stream, const Fold& fold, size_t samples, Array x,
                      Array folded) {
  const size_t blocks =
      samples * size_t(fold.height()) * size_t((fold.width() + kCells - 1) / kCells);
  WithElements(x.element, folded.element, [&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    const auto fold_images = fold.cell == 4 ? FoldImages<4, From, To> : FoldImages<2, From, To>;
    fold_images<<<unsigned(blocks), kThreads, 0, stream>>>(fold, As<const From>(x), As<To>(folded));
  });
}

void LaunchFoldWeights(cudaStream_t stream, const Fold& fold, int out, const float* weights,
                       Array folded) {
  WithElement(folded.element, [&](auto zero) {
    FoldWeights<<<BlocksFor(fold.weights(out)), kThreads, 0, stream>>>(fold, out, weights,
                                                                       As<decltype(zero)>(folded));
  });
}

void LaunchUnfoldGradient(cudaStream_t stream, const Fold& fold, int out, Array folded,
                          float* gradient, bool accumulate) {
  const Window& w = fold.window;
  const size_t weights = size_t(w.kernel) * w.kernel * w.channels * out;
  WithElement(folded.element, [&](auto zero) {
    UnfoldGradient<<<BlocksFor(weights), kThreads, 0, stream>>>(
        fold, out, weights, As<const decltype(zero)>(folded), gradient, accumulate);
  });
}

}  // namespace trireme::cuda
