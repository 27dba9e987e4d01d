// Winograd's convolutions, forward and by input. Each thread turns a block of tiles over,
// multiplies frequency by frequency (a product of tiles x channels for each), and turns the results
// back, while the block stays in its cache. How tiles are divided among blocks and threads changes
// no bit.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/winograd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/pack-inl.h"
#include "engine/cpu/winograd-inl.h"
#include "engine/cpu/winograd_lines-inl.h"
#include "engine/cpu/winograd_tiles-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

// Tiles of a block: many where the kernels' transform is too large for the second cache, as each
// block reads all of it.
size_t BlockTiles(size_t in, size_t out) {
  const size_t tiles = in * out <= 128 * 128 ? 48 : 96;
  return hwy::RoundUpTo(tiles, kTileRows);
}

// Floats between frequencies: of the kernels, of a block's inputs, of its products.
struct WinogradStrides {
  size_t kernels, inputs, products, product_row;
  WinogradStrides(size_t in, size_t out)
      : kernels(PanelFloats(in, out) + 272),
        inputs(BlockTiles(in, out) * hwy::RoundUpTo(in, kGroup) + 16),
        product_row(Apart(out)) {
    products = BlockTiles(in, out) * product_row + 16;
  }
};

// One convolution from x to y with padding; by input, x is dy and y is dx.
struct WinogradTask {
  TiledImages x;
  size_t in, out;
  float* y;
  size_t out_height, out_width;
  Finish finish;
  const float* kernels;  // transformed
  const float* zeros;

  template <class W>
  void Run(size_t begin, size_t end, float* block) const {
    if (begin >= end) return;
    const WinogradStrides strides(in, out);
    const size_t blocks = hwy::DivCeil(end - begin, BlockTiles(in, out));
    const size_t step = hwy::RoundUpTo(hwy::DivCeil(end - begin, blocks), kTileRows);
    float* products = block + W::kTile * W::kTile * strides.inputs;
    for (size_t first = begin; first < end; first += step) {
      const size_t count = std::min(step, end - first);
      for (size_t i = 0; i < count; ++i) TurnInput<W>(first + i, i, strides, block);
      for (size_t f = 0; f < W::kTile * W::kTile; ++f) {
        Multiply(count, strides, kernels + f * strides.kernels, block + f * strides.inputs,
                 products + f * strides.products);
      }
      for (size_t i = 0; i < count; ++i) TurnOutput<W>(first + i, i, strides, products);
    }
  }

  // Writes a tile as row `i` of the packed rows that register tiles read.
  template <class W>
  void TurnInput(size_t tile, size_t i, const WinogradStrides& strides, float* block) const {
    const TilePixels<W::kTile> pixels(x, tile, zeros);
    float* row =
        block + i / kTileRows * kTileRows * hwy::RoundUpTo(in, kGroup) + i % kTileRows * kGroup;
    ForLanes(0, in, [&](size_t c, size_t n) HWY_ATTR {
      float* to = row + c / kGroup * kTileRows * kGroup + c % kGroup;
      BothWays<typename W::Input>(
          [&](size_t a, size_t b) HWY_ATTR { return LoadN(pixels.at[a][b] + c, n); },
          [&](size_t a, size_t b, V value)
              HWY_ATTR { hn::StoreU(value, Floats(), to + (a * W::kTile + b) * strides.inputs); });
    });
  }

  void Multiply(size_t count, const WinogradStrides& strides, const float* panels,
                const float* rows, float* products) const {
    const size_t tiles = hwy::DivCeil(count, kTileRows);
    for (size_t j = 0; j < PanelCount(out); ++j) {
      const size_t width = PanelWidth(j, out), at = j * kTileColumns;
      float* targets[kTileRows];
      Into into = {.rows = targets,
                   .first = at,
                   .columns = std::min(width, out - at),
                   .add = false,
                   .bias = nullptr,
                   .relu = false};
      // Each register tile fetches a part of the next panel.
      const size_t part = hwy::RoundUpTo(hwy::DivCeil(in * kTileColumns, tiles), kGroup);
      for (size_t t = 0; t < tiles; ++t) {
        const size_t left = std::min(kTileRows, count - t * kTileRows);
        for (size_t r = 0; r < left; ++r) {
          targets[r] = products + (t * kTileRows + r) * strides.product_row;
        }
        into.next = panels + (at + width) * in + t * part;
        into.next_floats = part;
        ChooseTile<Order::kByRow>(left, width / kLanes)(
            in, rows + t * kTileRows * hwy::RoundUpTo(in, kGroup), panels + at * in, into);
      }
    }
  }

  template <class W>
  void TurnOutput(size_t tile, size_t i, const WinogradStrides& strides,
                  const float* products) const {
    const size_t in_image = tile % x.tiles();
    const size_t y0 = in_image / x.tiles_x * W::kOut, x0 = in_image % x.tiles_x * W::kOut;
    const size_t rows = std::min(W::kOut, out_height - y0);
    const size_t columns = std::min(W::kOut, out_width - x0);
    float* to = y + ((tile / x.tiles() * out_height + y0) * out_width + x0) * out;
    ForLanes(0, out, [&](size_t c, size_t n) HWY_ATTR {
      const float* from = products + i * strides.product_row + c;
      const V bias = finish.bias ? LoadN(finish.bias + c, n) : hn::Zero(Floats());
      BothWays<typename W::Output>(
          [&](size_t a, size_t b)
              HWY_ATTR { return LoadN(from + (a * W::kTile + b) * strides.products, n); },
          [&](size_t a, size_t b, V value) HWY_ATTR {
            if (a >= rows || b >= columns) return;
            value = hn::Add(value, bias);
            if (finish.relu) value = PositivePart(value);
            StoreN(value, to + (a * out_width + b) * out + c, n);
          });
    });
  }
};

// Transformed kernels as panels of B for each frequency: depth `in`, columns `out`.
template <class W>
void TurnKernels(const float* weights, size_t in, size_t out, float* kernels, Team& team) {
  const WinogradStrides strides(in, out);
  const size_t grain = 1 + kParallelWork / 8 / (W::kTile * W::kTile * out);
  ParallelFor(team, in, grain, [&](size_t begin, size_t end) HWY_ATTR {
    for (size_t j = 0; j < PanelCount(out); ++j) {
      const size_t width = PanelWidth(j, out), at = j * kTileColumns;
      for (size_t k = begin; k < end; ++k) {
        for (size_t v = 0; v < width; v += kLanes) {
          const float* from = weights + k * out + at + v;
          float* to = kernels + at * in + k * width + v;
          const size_t n = std::min(kLanes, out - at - v);
          BothWays<typename W::Kernel>(
              [&](size_t a, size_t b) HWY_ATTR { return LoadN(from + (a * 3 + b) * in * out, n); },
              [&](size_t a, size_t b, V value) HWY_ATTR {
                hn::StoreU(value, Floats(), to + (a * W::kTile + b) * strides.kernels);
              });
        }
      }
    }
  });
}

// The same for the kernels turned round and transposed: depth `out`, columns `in`.
template <class W>
void TurnKernelsRound(const float* weights, size_t in, size_t out, float* kernels, Team& team) {
  constexpr size_t kDown = 16, kAcross = std::min<size_t>(16, kTileColumns);
  const WinogradStrides strides(out, in);
  const size_t down = hwy::DivCeil(out, kDown), count = hwy::DivCeil(in, kAcross) * down;
  const size_t grain = 1 + kParallelWork / 8 / (W::kTile * W::kTile * kDown * kAcross);
  ParallelFor(team, count, grain, [&](size_t begin, size_t end) HWY_ATTR {
    HWY_ALIGN float square[W::kTile * W::kTile][kAcross * kDown];
    for (size_t s = begin; s < end; ++s) {
      const size_t i0 = s / down * kAcross, o0 = s % down * kDown;
      const size_t columns = std::min(kAcross, in - i0), depth = std::min(kDown, out - o0);
      for (size_t i = 0; i < columns; ++i) {
        ForLanes(0, depth, [&](size_t o, size_t n) HWY_ATTR {
          const float* from = weights + (i0 + i) * out + o0 + o;
          BothWays<typename W::Kernel>(
              [&](size_t a, size_t b)
                  HWY_ATTR { return LoadN(from + (8 - a * 3 - b) * in * out, n); },
              [&](size_t a, size_t b, V value) HWY_ATTR {
                hn::StoreU(value, Floats(), square[a * W::kTile + b] + i * kDown + o);
              });
        });
      }
      const size_t panel = i0 / kTileColumns, width = PanelWidth(panel, in);
      const size_t padded = hwy::RoundUpTo(columns, kLanes);
      for (size_t f = 0; f < W::kTile * W::kTile; ++f) {
        float* to = kernels + f * strides.kernels + panel * kTileColumns * out + o0 * width +
                    i0 % kTileColumns;
        Transpose(square[f], kDown, columns, depth, to, width);
        for (size_t k = 0; columns < padded && k < depth; ++k) {
          ZeroFloats(padded - columns, to + k * width + columns);
        }
      }
    }
  });
}

template <class W>
size_t WinogradBlock(size_t in, size_t out) {
  const WinogradStrides strides(in, out);
  return hwy::RoundUpTo(W::kTile * W::kTile * (strides.inputs + strides.products), 16);
}

template <class W>
void RunWinograd(WinogradTask task, size_t samples, float* scratch, Team& team) {
  const size_t tiles = samples * task.x.tiles();
  const size_t kernels = W::kTile * W::kTile * WinogradStrides(task.in, task.out).kernels;
  task.kernels = scratch;
  float* zeros = scratch + hwy::RoundUpTo(kernels, 16);
  ZeroFloats(task.in, zeros);
  task.zeros = zeros;
  float* blocks = zeros + hwy::RoundUpTo(task.in, 16);
  const size_t block = WinogradBlock<W>(task.in, task.out);
  const size_t threads = static_cast<size_t>(team.size());
  team.Run([&](int thread) {
    const size_t t = static_cast<size_t>(thread);
    task.Run<W>(tiles * t / threads, tiles * (t + 1) / threads, blocks + t * block);
  });
}

template <class W>
size_t WinogradScratchBy(const ConvShape& s, size_t threads) {
  const auto one_way = [&](size_t in, size_t out) {
    return hwy::RoundUpTo(W::kTile * W::kTile * WinogradStrides(in, out).kernels, 16) +
           hwy::RoundUpTo(in, 16) + threads * WinogradBlock<W>(in, out);
  };
  return std::max(one_way(s.in, s.out), one_way(s.out, s.in));
}

template <class W>
void WinogradForwardBy(const ConvShape& s, size_t samples, const float* x, const float* weights,
                       float* y, const Finish& finish, float* scratch, Team& team) {
  TurnKernels<W>(weights, s.in, s.out, scratch, team);
  RunWinograd<W>(
      {.x = {x, ptrdiff_t(s.height), ptrdiff_t(s.width), s.in, hwy::DivCeil(s.out_height, W::kOut),
             hwy::DivCeil(s.out_width, W::kOut), ptrdiff_t(W::kOut), -ptrdiff_t(s.padding)},
       .in = s.in,
       .out = s.out,
       .y = y,
       .out_height = s.out_height,
       .out_width = s.out_width,
       .finish = finish},
      samples, scratch, team);
}

template <class W>
void WinogradGradInputBy(const ConvShape& s, size_t samples, const float* dy, const float* weights,
                         float* dx, float* scratch, Team& team) {
  TurnKernelsRound<W>(weights, s.in, s.out, scratch, team);
  RunWinograd<W>({.x = {dy, ptrdiff_t(s.out_height), ptrdiff_t(s.out_width), s.out,
                        hwy::DivCeil(s.height, W::kOut), hwy::DivCeil(s.width, W::kOut),
                        ptrdiff_t(W::kOut), ptrdiff_t(s.padding) - 2},
                  .in = s.out,
                  .out = s.in,
                  .y = dx,
                  .out_height = s.height,
                  .out_width = s.width},
                 samples, scratch, team);
}

}  // namespace

void WinogradForward(size_t tile, const ConvShape& s, size_t samples, const float* x,
                     const float* weights, float* y, const Finish& finish, float* scratch,
                     Team& team) {
  const auto run = tile == 2 ? WinogradForwardBy<Winograd2> : WinogradForwardBy<Winograd4>;
  run(s, samples, x, weights, y, finish, scratch, team);
}

void WinogradGradInput(size_t tile, const ConvShape& s, size_t samples, const float* dy,
                       const float* weights, float* dx, float* scratch, Team& team) {
  const auto run = tile == 2 ? WinogradGradInputBy<Winograd2> : WinogradGradInputBy<Winograd4>;
  run(s, samples, dy, weights, dx, scratch, team);
}

size_t WinogradScratch(size_t tile, const ConvShape& s, size_t threads) {
  return tile == 2 ? WinogradScratchBy<Winograd2>(s, threads)
                   : WinogradScratchBy<Winograd4>(s, threads);
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
