// Winograd's convolutions, forward and input gradient (dgrad): tiles are turned over, multiplied
// frequency by frequency (a product of tiles x channels for each), and turned back. How that is
// divided among threads changes no bit; of more than 128 channels sums are cut by the number of
// tiles, so their last bits depend on how many samples are computed at once.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/winograd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/pack-inl.h"
#include "engine/cpu/winograd-inl.h"
#include "engine/cpu/winograd_ends-inl.h"
#include "engine/cpu/winograd_kernels-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

// Few kernels stay in the second cache besides a block of tiles: threads divide the tiles. Some
// more: of one frequency, kernels, many tiles and their products do; threads divide the
// frequencies. More than that, or few tiles: threads divide the columns, turn the kernels of one
// panel and multiply all tiles by them.
constexpr size_t kFewKernels = 128 * 128, kSomeKernels = 256 * 256;
constexpr size_t kManyTiles = 64, kFewTiles = 96;
constexpr size_t kBlock = hwy::RoundUpTo(48, kTileRows);       // tiles
constexpr size_t kWideBlock = hwy::RoundUpTo(512, kTileRows);  // tiles turned over at once
constexpr size_t kWideDepth = 256;  // of a panel's kernels that are turned over at once
static_assert(kFewTiles * Apart(2 * kTileColumns) <= kWideBlock * Apart(kTileColumns));

// One convolution from x to y with padding; for dgrad x is dy and y is dx.
template <class W>
class WinogradTask {
 public:
  WinogradTask(const TiledImages& x, const WinogradKernels<W>& kernels,
               const WinogradOutput<W>& output)
      : input_{x, nullptr},
        kernels_(kernels),
        output_(output),
        depth_(kernels.depth),
        columns_(kernels.columns) {}

  static size_t Scratch(size_t depth, size_t columns, size_t threads) {
    const size_t zeros = hwy::RoundUpTo(depth, 16), kernels = KernelStride(depth, columns);
    if (depth * columns <= kFewKernels) {
      return zeros +
             kFrequencies * (kernels + threads * (Rows(kBlock, depth) + Products(kBlock, columns)));
    }
    const size_t own = PanelStride(depth) + Products(kWideBlock, kTileColumns);
    const size_t shared =
        depth * columns <= kSomeKernels ? kernels + Products(kWideBlock, columns) : 0;
    return zeros + kFrequencies * (Rows(kWideBlock, depth) + std::max(shared, threads * own));
  }

  void Run(size_t samples, float* scratch, Team& team) {
    input_.zeros = scratch;
    ZeroFloats(depth_, scratch);
    scratch += hwy::RoundUpTo(depth_, 16);
    const size_t tiles = samples * input_.images.tiles();
    if (depth_ * columns_ <= kFewKernels) return RunTiles(tiles, scratch, team);
    const bool by_frequency = depth_ * columns_ <= kSomeKernels && tiles >= kManyTiles;
    float* rest = scratch + kFrequencies * Rows(kWideBlock, depth_);
    if (by_frequency) kernels_.TurnAll(rest, KernelStride(depth_, columns_), team);
    for (size_t first = 0; first < tiles; first += kWideBlock) {
      const size_t count = std::min(kWideBlock, tiles - first);
      ParallelFor(team, count, 1, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          input_.Turn(first + i, i, kTileRows, Rows(kWideBlock, depth_), scratch);
        }
      });
      if (by_frequency) {
        RunFrequencies(first, count, scratch, rest, team);
      } else {
        RunColumns(first, count, scratch, rest, team);
      }
    }
  }

 private:
  static constexpr size_t kFrequencies = W::kTile * W::kTile;

  // Floats from one frequency to the next, in whole cache lines and no power of two: of packed rows
  // of tiles, of products, of all panels, of one or half of two.
  static size_t Rows(size_t tiles, size_t depth) {
    return tiles * hwy::RoundUpTo(depth, kGroup) + 16;
  }
  static size_t Products(size_t tiles, size_t columns) { return tiles * Apart(columns) + 16; }
  static size_t KernelStride(size_t depth, size_t columns) {
    return hwy::RoundUpTo(PanelFloats(depth, columns), 16) + 272;
  }
  static size_t PanelStride(size_t depth) {
    return hwy::RoundUpTo(2 * std::min(depth, kWideDepth / 2) * kTileColumns, 16) + 16;
  }
  // Packed rows of one register tile.
  size_t GroupFloats() const { return PackedTileFloats(depth_); }

  // All kernels first, then each thread its tiles, block by block.
  void RunTiles(size_t tiles, float* scratch, Team& team) const {
    const size_t stride = KernelStride(depth_, columns_);
    kernels_.TurnAll(scratch, stride, team);
    const size_t rows = Rows(kBlock, depth_), products = Products(kBlock, columns_);
    // A whole number of blocks for each thread, if there are few.
    const size_t blocks =
        std::min(tiles, hwy::RoundUpTo(hwy::DivCeil(tiles, kBlock), size_t(team.size())));
    ParallelFor(team, blocks, 1, [&](size_t begin, size_t end, size_t thread) {
      float* block = scratch + kFrequencies * (stride + thread * (rows + products));
      float* product = block + kFrequencies * rows;
      for (size_t b = begin; b < end; ++b) {
        const size_t first = tiles * b / blocks, count = tiles * (b + 1) / blocks - first;
        const size_t high = hwy::DivCeil(count, hwy::DivCeil(count, kTileRows));
        for (size_t i = 0; i < count; ++i) input_.Turn(first + i, i, high, rows, block);
        for (size_t f = 0; f < kFrequencies; ++f) {
          for (size_t j = 0; j < PanelCount(columns_); ++j) {
            // What is likely the next panel is fetched meanwhile.
            const float* panel = scratch + f * stride + j * kTileColumns * depth_;
            const size_t floats = depth_ * PanelWidth(j, columns_);
            Multiply(count, high, j, depth_, panel, block + f * rows,
                     product + f * products + j * kTileColumns, Apart(columns_), false,
                     {.first = panel + floats, .floats = floats, .rows = 1});
          }
        }
        for (size_t i = 0; i < count; ++i) {
          output_.Turn(first + i, product + i * Apart(columns_), products, 0, columns_);
        }
      }
      hwy::FlushStream();
    });
  }

  // Each thread its frequencies, or its columns of them, of turned tiles (at most kWideBlock) and
  // all kernels.
  void RunFrequencies(size_t first, size_t tiles, const float* turned, float* scratch,
                      Team& team) const {
    const size_t kernels = KernelStride(depth_, columns_), row = Apart(columns_);
    const size_t products = Products(kWideBlock, columns_), panels = PanelCount(columns_);
    float* product = scratch + kFrequencies * kernels;
    const size_t threads = static_cast<size_t>(team.size());
    const size_t shares = std::min(panels, hwy::DivCeil(4 * threads, kFrequencies));
    ParallelFor(team, kFrequencies * shares, 1, [&](size_t begin, size_t end) {
      for (size_t unit = begin; unit < end; ++unit) {
        const size_t f = unit / shares, share = unit % shares;
        MultiplyFrequency(tiles, panels * share / shares, panels * (share + 1) / shares,
                          scratch + f * kernels, turned + f * Rows(kWideBlock, depth_),
                          product + f * products);
      }
    });
    ParallelFor(team, tiles, 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        output_.Turn(first + i, product + i * row, products, 0, columns_);
      }
      hwy::FlushStream();
    });
  }

  // Products of all tiles with some panels of one frequency: a register tile's rows meet all panels
  // while they are in the first cache.
  void MultiplyFrequency(size_t tiles, size_t panel_begin, size_t panel_end, const float* kernels,
                         const float* rows, float* products) const {
    const size_t groups = hwy::DivCeil(tiles, kTileRows), panels = panel_end - panel_begin;
    for (size_t t = 0; t < groups; ++t, rows += GroupFloats()) {
      const size_t count = std::min(kTileRows, tiles - t * kTileRows);
      float* targets[kTileRows];
      for (size_t r = 0; r < count; ++r) {
        targets[r] = products + (t * kTileRows + r) * Apart(columns_);
      }
      // Meanwhile the next rows are fetched.
      Fetcher fetcher({{.first = rows + GroupFloats(), .floats = GroupFloats(), .rows = 1}},
                      panels * hwy::DivCeil(depth_, kGroup));
      for (size_t j = panel_begin; j < panel_end; ++j) {
        const size_t width = PanelWidth(j, columns_), at = j * kTileColumns;
        const Into into = {.rows = targets,
                           .first = at,
                           .columns = std::min(width, columns_ - at),
                           .add = false,
                           .bias = nullptr,
                           .relu = false,
                           .fetcher = &fetcher};
        ChooseTile<Order::kByRow>(count, width / kLanes)(depth_, rows, kernels + at * depth_, into);
      }
    }
  }

  // Each thread its panels of columns, of turned tiles (at most kWideBlock).
  void RunColumns(size_t first, size_t tiles, const float* turned, float* scratch,
                  Team& team) const {
    const size_t rows = Rows(kWideBlock, depth_), stride = PanelStride(depth_);
    const size_t products = Products(kWideBlock, kTileColumns);
    // Few tiles' products stay in the second cache even of two panels: then tiles come half as
    // often, and only half of the kernels' depth is turned at once.
    const size_t strip = tiles <= kFewTiles ? 2 : 1, most = kWideDepth / strip;
    const size_t row = Apart(strip * kTileColumns);
    // With more threads than strips several share one.
    const size_t panels = PanelCount(columns_), strips = hwy::DivCeil(panels, strip);
    const size_t shares = std::min(hwy::DivCeil(static_cast<size_t>(team.size()), strips),
                                   hwy::DivCeil(tiles, kTileRows));
    ParallelFor(team, strips * shares, 1, [&](size_t first_unit, size_t last_unit, size_t thread) {
      float* kernels = scratch + kFrequencies * thread * (stride + products);
      float* product = kernels + kFrequencies * stride;
      for (size_t unit = first_unit; unit < last_unit; ++unit) {
        const size_t panel = unit / shares * strip, share = unit % shares;
        const size_t last = std::min(panels, panel + strip);
        const size_t at = panel * kTileColumns;
        const size_t groups = hwy::DivCeil(tiles, kTileRows);
        const size_t begin = groups * share / shares * kTileRows;
        const size_t end = std::min(tiles, groups * (share + 1) / shares * kTileRows);
        for (size_t k0 = 0; k0 < depth_; k0 += most) {
          const size_t deep = std::min(most, depth_ - k0);
          const auto kernels_of = [&](size_t j) {
            return kernels + (j - panel) * kTileColumns * deep;
          };
          for (size_t j = panel; j < last; ++j) {
            kernels_.Turn(j, k0, k0 + deep, kernels_of(j), stride);
          }
          ForBlocks(begin, end, [&](size_t tile, size_t count) {
            for (size_t f = 0; f < kFrequencies; ++f) {
              // The kernels are in the second cache; the next frequency's tiles are not.
              const float* from =
                  turned + f * rows + tile / kTileRows * GroupFloats() + k0 * kTileRows;
              const Ahead next = {.first = from + rows,
                                  .stride = GroupFloats(),
                                  .floats = deep * kTileRows,
                                  .rows = hwy::DivCeil(count, kTileRows)};
              for (size_t j = panel; j < last; ++j) {
                Multiply(count, kTileRows, j, deep, kernels_of(j) + f * stride, from,
                         product + f * products + (tile - begin) * row + (j - panel) * kTileColumns,
                         row, k0 > 0, Part(next, j - panel, last - panel));
              }
            }
          });
        }
        for (size_t i = begin; i < end; ++i) {
          output_.Turn(first + i, product + (i - begin) * row, products, at,
                       std::min(strip * kTileColumns, columns_ - at));
        }
      }
      hwy::FlushStream();
    });
  }

  // Calls each(first, count) for blocks of tiles of about equal length; all but the last are whole
  // groups of rows, and so are the distances from `begin`.
  template <class F>
  static void ForBlocks(size_t begin, size_t end, const F& each) {
    if (begin >= end) return;
    const size_t blocks = hwy::DivCeil(end - begin, kBlock);
    const size_t step = hwy::RoundUpTo(hwy::DivCeil(end - begin, blocks), kTileRows);
    for (size_t i = begin; i < end; i += step) each(i, std::min(step, end - i));
  }

  // Products of `count` tiles, `high` in a register tile, with panel j, over `depth` values of k;
  // the first ones stand at `panel`, `rows` and `products`. Meanwhile `ahead` is fetched.
  void Multiply(size_t count, size_t high, size_t j, size_t depth, const float* panel,
                const float* rows, float* products, size_t product_row, bool add,
                const Ahead& ahead) const {
    const size_t width = PanelWidth(j, columns_);
    float* targets[kTileRows];
    Fetcher fetcher({ahead}, hwy::DivCeil(count, high) * hwy::DivCeil(depth, kGroup));
    const Into into = {.rows = targets,
                       .first = 0,
                       .columns = std::min(width, columns_ - j * kTileColumns),
                       .add = add,
                       .bias = nullptr,
                       .relu = false,
                       .fetcher = &fetcher};
    for (size_t t = 0; t * high < count; ++t) {
      const size_t left = std::min(high, count - t * high);
      for (size_t r = 0; r < left; ++r) {
        targets[r] = products + (t * high + r) * product_row;
      }
      ChooseTile<Order::kByRow>(left, width / kLanes)(depth, rows + t * GroupFloats(), panel, into);
    }
  }

  WinogradInput<W> input_;
  const WinogradKernels<W> kernels_;
  const WinogradOutput<W> output_;
  const size_t depth_, columns_;
};

template <class W>
size_t WinogradScratchBy(const ConvShape& s, size_t threads) {
  return std::max(WinogradTask<W>::Scratch(s.in, s.out, threads),
                  WinogradTask<W>::Scratch(s.out, s.in, threads));
}

template <class W>
void WinogradForwardBy(const ConvShape& s, size_t samples, const float* x, const float* weights,
                       float* y, const Finish& finish, float* scratch, Team& team) {
  const WinogradOutput<W> output = {y, s.out_height, s.out_width, s.out, finish};
  const TiledImages images = {x,
                              ptrdiff_t(s.height),
                              ptrdiff_t(s.width),
                              s.in,
                              output.tiles_y(),
                              output.tiles_x(),
                              ptrdiff_t(W::kOut),
                              -ptrdiff_t(s.padding)};
  WinogradTask<W>(images, {weights, s.in, s.out, false}, output).Run(samples, scratch, team);
}

template <class W>
void WinogradGradInputBy(const ConvShape& s, size_t samples, const float* dy, const float* weights,
                         float* dx, float* scratch, Team& team) {
  const Finish finish = {.stream = MayStream(dx, samples * s.in_pixels() * s.in, s.in)};
  const WinogradOutput<W> output = {dx, s.height, s.width, s.in, finish};
  const TiledImages images = {dy,
                              ptrdiff_t(s.out_height),
                              ptrdiff_t(s.out_width),
                              s.out,
                              output.tiles_y(),
                              output.tiles_x(),
                              ptrdiff_t(W::kOut),
                              ptrdiff_t(s.padding) - 2};
  WinogradTask<W>(images, {weights, s.out, s.in, true}, output).Run(samples, scratch, team);
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
