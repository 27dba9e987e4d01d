#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <optional>

#include "engine/cuda/array.h"
#include "engine/cuda/window.h"

namespace trireme::cuda {

// A convolution of stride 2 over few channels keeps tensor cores idle: they multiply 8 channels at
// a time and more. Cells of pixels become one pixel of many channels (space to depth), over which a
// smaller window slides with stride 1. Cells of 2x2 pixels give a result each; cells of 4x4 give
// 2x2 results, which then lie together (cells.h). The folded images have the padding in them, and
// channels of zeros up to a multiple of what tensor cores like.
struct Fold {
  Window window;    // that is folded
  int cell = 0;     // pixels of a cell, in one direction
  int results = 0;  // of a cell, in one direction
  int before = 0;   // cells of padding above and to the left
  int kernel = 0;   // cells of a window
  int channels = 0;

  constexpr int out_height() const { return window.out_height / results; }
  constexpr int out_width() const { return window.out_width / results; }
  constexpr int height() const { return out_height() + kernel - 1; }  // of the folded images
  constexpr int width() const { return out_width() + kernel - 1; }
  constexpr int out(int channels_out) const { return results * results * channels_out; }
  constexpr size_t image() const { return size_t(height()) * size_t(width()) * size_t(channels); }
  constexpr size_t weights(int channels_out) const {
    return size_t(out(channels_out)) * kernel * kernel * channels;
  }
  constexpr Window folded() const {
    return {.height = height(),
            .width = width(),
            .channels = channels,
            .out_height = out_height(),
            .out_width = out_width(),
            .kernel = kernel};
  }
};

// With results in cells, or one by one. Null: it is not of that kind.
std::optional<Fold> FoldOf(const Window& window, bool in_cells);

void LaunchFoldImages(cudaStream_t stream, const Fold& fold, size_t samples, Array x, Array folded);
// [kh][kw][in][out] of a state to [out][kh][kw][in] of the folded window, and its gradient back.
void LaunchFoldWeights(cudaStream_t stream, const Fold& fold, int out, const float* weights,
                       Array folded);
void LaunchUnfoldGradient(cudaStream_t stream, const Fold& fold, int out, Array folded,
                          float* gradient, bool accumulate);

}  // namespace trireme::cuda
