// The weights' gradient by Winograd: blocks of tiles are turned over by all threads, then each
// frequency adds its product of inputs and gradients over the block's tiles. Blocks are as long for
// any number of threads, and a frequency's sum is added up in the order of tiles.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/winograd_weights.cc"
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

// Tiles of a block: few where all frequencies' sums stay in the second cache besides it, else many,
// as each block reads and writes the sums.
constexpr size_t WeightBlockTiles(size_t in, size_t out) { return in * out <= 64 * 64 ? 96 : 192; }

// R rows x N vectors of C = transposed a * b, both as they lie: a[k][row], b[k][column].
template <size_t R, size_t N>
void WeightTile(size_t depth, const float* HWY_RESTRICT a, size_t a_stride,
                const float* HWY_RESTRICT b, size_t b_stride, const Into& into) {
  ComputeTile<R, N>(into, [&](V(&sum)[R][N]) HWY_ATTR {
    size_t k = 0;
    for (; k + kGroup <= depth; k += kGroup) {
      if (into.fetcher) into.fetcher->Next();
#pragma GCC unroll 2
      for (size_t i = 0; i < kGroup; ++i, a += a_stride, b += b_stride) MultiplyDepth(a, b, sum);
    }
    for (; k < depth; ++k, a += a_stride, b += b_stride) MultiplyDepth(a, b, sum);
  });
}

using WeightFunction = void (*)(size_t, const float*, size_t, const float*, size_t, const Into&);

template <size_t N, size_t... R>
constexpr std::array<WeightFunction, sizeof...(R)> WeightTiles(std::index_sequence<R...>) {
  return {&WeightTile<R + 1, N>...};
}

WeightFunction ChooseWeightTile(size_t rows, size_t vectors) {
  static constexpr auto kOne = WeightTiles<1>(std::make_index_sequence<kTileRows>());
  static constexpr auto kTwo = WeightTiles<2>(std::make_index_sequence<kTileRows>());
  return vectors == 1 ? kOne[rows - 1] : kTwo[rows - 1];
}

struct WeightStrides {
  size_t x_row, dy_row, x, dy, sums;  // rows of a tile; frequencies
  WeightStrides(size_t in, size_t out)
      : x_row(Apart(in)),
        dy_row(Apart(out)),
        x(WeightBlockTiles(in, out) * x_row + 16),
        dy(WeightBlockTiles(in, out) * dy_row + 16),
        sums(in * hwy::RoundUpTo(out, 16) + 16) {}
  size_t floats(size_t frequencies) const { return frequencies * (x + dy + sums); }
};

struct WeightTask {
  TiledImages x, dy;
  size_t in, out;
  const float* zeros;
  WeightStrides strides;

  // Tile number `tile` becomes row `i` of the block.
  template <class T>
  void Turn(const TiledImages& images, size_t tile, size_t stride, float* to) const {
    const TilePixels<T::kFrom> pixels(images, tile, zeros);
    // A whole vector is written where less is left: rows are that far apart.
    static_assert(kLanes <= 16);
    ForLanes(0, images.channels, [&](size_t c, size_t n) HWY_ATTR {
      BothWays<T>([&](size_t a, size_t b) HWY_ATTR { return LoadN(pixels.at[a][b] + c, n); },
                  [&](size_t a, size_t b, V value) HWY_ATTR {
                    hn::StoreU(value, Floats(), to + (a * T::kTo + b) * stride + c);
                  });
    });
  }

  // What rows [begin, end) of the next frequency's sums are made of, fetched by `tiles` register
  // tiles of this one. Its gradients serve all rows: these fetch their part of them.
  Fetcher Next(size_t count, size_t begin, size_t end, const float* xs, const float* dys,
               const float* sums, bool add, size_t tiles) const {
    const size_t row_floats = hwy::RoundUpTo(out, 16), from = count * begin / in;
    return Fetcher(
        {{xs + strides.x + begin, strides.x_row, end - begin, count},
         {dys + strides.dy + from * strides.dy_row, strides.dy_row, out, count * end / in - from},
         {sums + strides.sums + begin * row_floats, row_floats, out, add ? end - begin : 0}},
        tiles * hwy::DivCeil(count, kGroup));
  }

  // Rows [begin, end) of one frequency's sums, `step` at once, over `count` tiles. Sums that are
  // not added to go past the caches where `stream`.
  void Multiply(size_t count, size_t begin, size_t end, size_t step, const float* xs,
                const float* dys, float* sums, bool add, bool stream) const {
    const size_t row_floats = hwy::RoundUpTo(out, 16);
    Fetcher next = Next(count, begin, end, xs, dys, sums, add,
                        hwy::DivCeil(end - begin, step) * PanelCount(out));
    for (size_t at = 0; at < out; at += kTileColumns) {
      const size_t width = std::min(kTileColumns, hwy::RoundUpTo(out - at, kLanes));
      for (size_t row = begin; row < end; row += step) {
        const size_t rows = std::min(step, end - row);
        float* targets[kTileRows];
        for (size_t r = 0; r < rows; ++r) targets[r] = sums + (row + r) * row_floats;
        // Columns beyond `out` are sums of what tiles hold there: written, never read.
        const Into into = {.rows = targets,
                           .first = at,
                           .columns = width,
                           .add = add,
                           .bias = nullptr,
                           .relu = false,
                           .stream = stream,
                           .fetcher = &next};
        ChooseWeightTile(rows, width / kLanes)(count, xs + row, strides.x_row, dys + at,
                                               strides.dy_row, into);
      }
    }
  }
};

template <class W>
void TurnBack(const WeightTask& task, const float* sums, float* dw, bool add, Team& team) {
  const size_t in = task.in, out = task.out, row_floats = hwy::RoundUpTo(out, 16);
  const size_t grain = 1 + kParallelWork / 8 / (W::kTile * W::kTile * out);
  ParallelFor(team, in, grain, [&](size_t begin, size_t end) HWY_ATTR {
    for (size_t i = begin; i < end; ++i) {
      ForLanes(0, out, [&](size_t o, size_t n) HWY_ATTR {
        const float* from = sums + i * row_floats + o;
        float* to = dw + i * out + o;
        BothWays<typename W::KernelGrad>(
            [&](size_t a, size_t b)
                HWY_ATTR { return LoadN(from + (a * W::kTile + b) * task.strides.sums, n); },
            [&](size_t a, size_t b, V value) HWY_ATTR {
              float* tap = to + (a * 3 + b) * in * out;
              StoreN(add ? hn::Add(LoadN(tap, n), value) : value, tap, n);
            });
      });
    }
  });
}

template <class W>
void WinogradGradWeightsBy(const ConvShape& s, size_t samples, const float* x, const float* dy,
                           float* dw, bool add, float* scratch, Team& team) {
  constexpr size_t kFrequencies = W::kTile * W::kTile;
  const size_t tiles_y = hwy::DivCeil(s.out_height, W::kOut);
  const size_t tiles_x = hwy::DivCeil(s.out_width, W::kOut);
  const ptrdiff_t apart = ptrdiff_t(W::kOut);
  const WeightStrides strides(s.in, s.out);
  float* xs = scratch;
  float* dys = xs + kFrequencies * strides.x;
  float* sums = dys + kFrequencies * strides.dy;
  float* zeros = sums + kFrequencies * strides.sums;
  ZeroFloats(std::max(s.in, s.out), zeros);
  const WeightTask task{
      {x, ptrdiff_t(s.height), ptrdiff_t(s.width), s.in, tiles_y, tiles_x, apart,
       -ptrdiff_t(s.padding)},
      {dy, ptrdiff_t(s.out_height), ptrdiff_t(s.out_width), s.out, tiles_y, tiles_x, apart, 0},
      s.in,
      s.out,
      zeros,
      strides};
  const size_t tiles = samples * task.x.tiles();
  // Work is divided into rows of sums of all frequencies; register tiles are about equally high.
  const size_t step = hwy::DivCeil(s.in, hwy::DivCeil(s.in, kTileRows)), some = 4 * step;
  const size_t rows = hwy::DivCeil(s.in, some), block = WeightBlockTiles(s.in, s.out);
  const bool only = tiles <= block;  // then each sum is written once
  for (size_t first = 0; first < tiles; first += block) {
    const size_t count = std::min(block, tiles - first);
    ParallelFor(team, count, 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        task.Turn<typename W::Input>(task.x, first + i, strides.x, xs + i * strides.x_row);
        task.Turn<typename W::OutputGrad>(task.dy, first + i, strides.dy, dys + i * strides.dy_row);
      }
    });
    ParallelFor(team, kFrequencies * rows, 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t f = i / rows, row = i % rows * some;
        task.Multiply(count, row, std::min(s.in, row + some), step, xs + f * strides.x,
                      dys + f * strides.dy, sums + f * strides.sums, first > 0,
                      only && MayStream(sums, kFrequencies * strides.sums, 16));
      }
      if (only) hwy::FlushStream();
    });
  }
  TurnBack<W>(task, sums, dw, add, team);
}

}  // namespace

void WinogradGradWeights(size_t tile, const ConvShape& s, size_t samples, const float* x,
                         const float* dy, float* dw, bool add, float* scratch, Team& team) {
  const auto run = tile == 2 ? WinogradGradWeightsBy<Winograd2> : WinogradGradWeightsBy<Winograd4>;
  run(s, samples, x, dy, dw, add, scratch, team);
}

size_t WinogradGradWeightsScratch(size_t tile, const ConvShape& s) {
  const size_t frequencies = (tile + 2) * (tile + 2);
  return WeightStrides(s.in, s.out).floats(frequencies) + std::max(s.in, s.out) + 16;
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
