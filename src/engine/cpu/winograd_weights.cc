// The weight gradient (wgrad) by Winograd: a block of tiles is turned over, then each frequency
// adds its product of inputs and gradients over the block's tiles. All threads work on a block
// together; where sums are few each has blocks of its own, parts of all tiles. Blocks and parts are
// the same for any number of threads, and a frequency's sum is added up in the order of tiles.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"
#include "engine/cpu/tiling/divide.h"
#include "engine/cpu/tiling/row_parts.h"

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

// Zeros that stand for pixels outside of an image.
size_t ZeroScratch(const ConvShape& s) { return hwy::RoundUpTo(std::max(s.in, s.out), 16); }

// Whether all frequencies' sums stay in the second cache beside a short block.
bool HasFewSums(size_t in, size_t out) { return in * out <= 64 * 64; }

// Tiles of a block: else many, as each block reads and writes the sums.
size_t WeightBlockTiles(size_t in, size_t out) { return HasFewSums(in, out) ? 48 : 192; }

// Tiles with sums of their own: some blocks, or all.
RowParts PartsOf(size_t tiles, size_t in, size_t out) {
  return {tiles, 9 * in * out, HasFewSums(in, out) ? 4 * WeightBlockTiles(in, out) : tiles};
}

// R rows x N vectors of C = transposed a * b, both as they lie: a[k][row], b[k][column].
template <size_t R, size_t N>
void WeightTile(size_t depth, const float* HWY_RESTRICT a, size_t a_stride,
                const float* HWY_RESTRICT b, size_t b_stride, const Into& into) {
  ComputeTile<R, N>(into, [&](V(&sum)[R][N]) TRIREME_INLINED {
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
    ForLanes(0, images.channels, [&](size_t c, size_t n) TRIREME_INLINED {
      BothWays<T>([&](size_t a, size_t b) TRIREME_INLINED { return LoadN(pixels.at[a][b] + c, n); },
                  [&](size_t a, size_t b, V value) TRIREME_INLINED {
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

// What a thread or all of them keep of a block, and the sums.
template <class W>
struct WeightBuffers {
  static constexpr size_t kFrequencies = W::kTile * W::kTile;
  float *xs, *dys, *sums;
  WeightBuffers(float* scratch, const WeightStrides& strides)
      : xs(scratch), dys(xs + kFrequencies * strides.x), sums(dys + kFrequencies * strides.dy) {}
};

// What is done with a block, in pieces that threads may share.
template <class W>
class WeightBlocks {
 public:
  explicit WeightBlocks(const WeightTask& task)
      : task_(task),
        step_(hwy::DivCeil(task.in, hwy::DivCeil(task.in, kTileRows))),
        rows_(hwy::DivCeil(task.in, 4 * step_)) {}

  // Tiles [begin, end) of the block that starts with tile `first`.
  void Turn(size_t first, size_t begin, size_t end, const WeightBuffers<W>& at) const {
    for (size_t i = begin; i < end; ++i) {
      task_.template Turn<typename W::Input>(task_.x, first + i, task_.strides.x,
                                             at.xs + i * task_.strides.x_row);
      task_.template Turn<typename W::OutputGrad>(task_.dy, first + i, task_.strides.dy,
                                                  at.dys + i * task_.strides.dy_row);
    }
  }

  // The work on a block of `count` turned tiles in pieces: some rows of a frequency's sums each, of
  // register tiles that are about equally high.
  size_t pieces() const { return WeightBuffers<W>::kFrequencies * rows_; }
  void Multiply(size_t count, size_t begin, size_t end, bool add, bool stream,
                const WeightBuffers<W>& at) const {
    const WeightStrides& strides = task_.strides;
    for (size_t i = begin; i < end; ++i) {
      const size_t f = i / rows_, row = i % rows_ * 4 * step_;
      task_.Multiply(count, row, std::min(task_.in, row + 4 * step_), step_, at.xs + f * strides.x,
                     at.dys + f * strides.dy, at.sums + f * strides.sums, add, stream);
    }
  }

  // Rows [begin, end) of all taps of dw.
  void TurnBack(size_t begin, size_t end, const float* sums, float* dw, bool add) const {
    const size_t in = task_.in, out = task_.out, row_floats = hwy::RoundUpTo(out, 16);
    for (size_t i = begin; i < end; ++i) {
      ForLanes(0, out, [&](size_t o, size_t n) TRIREME_INLINED {
        const float* from = sums + i * row_floats + o;
        float* to = dw + i * out + o;
        BothWays<typename W::KernelGrad>(
            [&](size_t a, size_t b) TRIREME_INLINED {
              return LoadN(from + (a * W::kTile + b) * task_.strides.sums, n);
            },
            [&](size_t a, size_t b, V value) TRIREME_INLINED {
              float* tap = to + (a * 3 + b) * in * out;
              StoreN(add ? hn::Add(LoadN(tap, n), value) : value, tap, n);
            });
      });
    }
  }

 private:
  const WeightTask& task_;
  size_t step_, rows_;
};

template <class W>
void WinogradGradWeightsBy(const ConvShape& s, size_t samples, const float* x, const float* dy,
                           float* dw, bool add, float* scratch, Team& team) {
  constexpr size_t kFrequencies = W::kTile * W::kTile;
  const size_t tiles_y = hwy::DivCeil(s.out_height, W::kOut);
  const size_t tiles_x = hwy::DivCeil(s.out_width, W::kOut);
  const ptrdiff_t apart = ptrdiff_t(W::kOut);
  const WeightStrides strides(s.in, s.out);
  float* zeros = scratch;
  ZeroFloats(std::max(s.in, s.out), zeros);
  scratch += ZeroScratch(s);
  const WeightTask task{
      {x, ptrdiff_t(s.height), ptrdiff_t(s.width), s.in, tiles_y, tiles_x, apart,
       -ptrdiff_t(s.padding)},
      {dy, ptrdiff_t(s.out_height), ptrdiff_t(s.out_width), s.out, tiles_y, tiles_x, apart, 0},
      s.in,
      s.out,
      zeros,
      strides};
  const WeightBlocks<W> blocks(task);
  const size_t tiles = samples * task.x.tiles(), block = WeightBlockTiles(s.in, s.out);
  if (const RowParts parts = PartsOf(tiles, s.in, s.out); parts.count() > 1) {
    const size_t own = strides.floats(kFrequencies);
    float* partial = scratch + static_cast<size_t>(team.size()) * own;
    ParallelFor(team, parts.count(), 1, [&](size_t begin, size_t end, size_t thread) {
      const WeightBuffers<W> buffers(scratch + thread * own, strides);
      for (size_t i = begin; i < end; ++i) {
        for (size_t first = parts.begin(i); first < parts.begin(i + 1); first += block) {
          const size_t count = std::min(block, parts.begin(i + 1) - first);
          blocks.Turn(first, 0, count, buffers);
          blocks.Multiply(count, 0, blocks.pieces(), first > parts.begin(i), false, buffers);
        }
        blocks.TurnBack(0, s.in, buffers.sums, partial + i * parts.stride(), false);
      }
    });
    return parts.Add(partial, dw, add, team);
  }
  const WeightBuffers<W> buffers(scratch, strides);
  const bool only = tiles <= block;  // then each sum is written once
  const bool stream = only && MayStream(buffers.sums, kFrequencies * strides.sums, 16);
  for (size_t first = 0; first < tiles; first += block) {
    const size_t count = std::min(block, tiles - first);
    ParallelFor(team, count, 1,
                [&](size_t begin, size_t end) { blocks.Turn(first, begin, end, buffers); });
    ParallelFor(team, blocks.pieces(), 1, [&](size_t begin, size_t end) {
      blocks.Multiply(count, begin, end, first > 0, stream, buffers);
      if (only) hwy::FlushStream();
    });
  }
  const size_t grain = 1 + kParallelWork / 8 / (kFrequencies * s.out);
  ParallelFor(team, s.in, grain, [&](size_t begin, size_t end) {
    blocks.TurnBack(begin, end, buffers.sums, dw, add);
  });
}

}  // namespace

void WinogradGradWeights(size_t tile, const ConvShape& s, size_t samples, const float* x,
                         const float* dy, float* dw, bool add, float* scratch, Team& team) {
  const auto run = tile == 2 ? WinogradGradWeightsBy<Winograd2> : WinogradGradWeightsBy<Winograd4>;
  run(s, samples, x, dy, dw, add, scratch, team);
}

size_t WinogradGradWeightsScratch(size_t tile, const ConvShape& s, size_t samples, size_t threads) {
  const size_t frequencies = (tile + 2) * (tile + 2);
  const size_t own = WeightStrides(s.in, s.out).floats(frequencies);
  const size_t tiles = samples * hwy::DivCeil(s.out_height, tile) * hwy::DivCeil(s.out_width, tile);
  const RowParts parts = PartsOf(tiles, s.in, s.out);
  return ZeroScratch(s) + (parts.count() > 1 ? threads * own + parts.floats() : own);
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
