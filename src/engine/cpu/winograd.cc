// Winograd's convolutions, forward and by input: tiles are turned over, multiplied frequency by
// frequency (a product of tiles x channels for each), and turned back. How that is divided among
// threads changes no bit; of more than 128 channels sums are cut by the number of tiles, so their
// last bits depend on how many samples are computed at once.
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

// The kernels of a product `depth` deep and `columns` wide, as panels of B for each frequency.
struct WinogradKernels {
  const float* weights;  // [3][3][depth][columns], or round: turned round, [3][3][columns][depth]
  size_t depth, columns;
  bool round;

  static constexpr size_t kStep = 16;  // rows that are turned at once

  // Rows [first, last) of panel j, `last` - `first` at most kStep; `to` is where row `first` goes.
  template <class W>
  void Turn(size_t j, size_t first, size_t last, float* to, size_t stride) const {
    if (round) {
      TurnRound<W>(j, first, last, to, stride);
    } else {
      TurnPlain<W>(j, first, last, to, stride);
    }
  }

 private:
  template <class W>
  void TurnPlain(size_t j, size_t first, size_t last, float* to, size_t stride) const {
    const size_t width = PanelWidth(j, columns), at = j * kTileColumns;
    for (size_t k = first; k < last; ++k) {
      for (size_t v = 0; v < width; v += kLanes) {
        const float* from = weights + k * columns + at + v;
        const size_t n = std::min(kLanes, columns - at - v);
        BothWays<typename W::Kernel>(
            [&](size_t a, size_t b)
                HWY_ATTR { return LoadN(from + (a * 3 + b) * depth * columns, n); },
            [&](size_t a, size_t b, V value) HWY_ATTR {
              hn::StoreU(value, Floats(),
                         to + (a * W::kTile + b) * stride + (k - first) * width + v);
            });
      }
    }
  }

  template <class W>
  void TurnRound(size_t j, size_t first, size_t last, float* to, size_t stride) const {
    constexpr size_t kAcross = std::min<size_t>(16, kTileColumns);
    const size_t width = PanelWidth(j, columns);
    HWY_ALIGN float square[W::kTile * W::kTile][kAcross * kStep];
    for (size_t c0 = 0; c0 < width; c0 += kAcross) {
      const size_t at = j * kTileColumns + c0, across = std::min(kAcross, columns - at);
      for (size_t i = 0; i < across; ++i) {
        ForLanes(first, last, [&](size_t k, size_t n) HWY_ATTR {
          const float* from = weights + (at + i) * depth + k;
          BothWays<typename W::Kernel>(
              [&](size_t a, size_t b)
                  HWY_ATTR { return LoadN(from + (8 - a * 3 - b) * depth * columns, n); },
              [&](size_t a, size_t b, V value) HWY_ATTR {
                hn::StoreU(value, Floats(), square[a * W::kTile + b] + i * kStep + k - first);
              });
        });
      }
      const size_t padded = hwy::RoundUpTo(across, kLanes);
      for (size_t f = 0; f < W::kTile * W::kTile; ++f) {
        float* rows = to + f * stride + c0;
        Transpose(square[f], kStep, across, last - first, rows, width);
        for (size_t k = 0; across < padded && k < last - first; ++k) {
          ZeroFloats(padded - across, rows + k * width + across);
        }
      }
    }
  }
};

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

// One convolution from x to y with padding; by input, x is dy and y is dx.
template <class W>
class WinogradTask {
 public:
  WinogradTask(const TiledImages& x, const WinogradKernels& kernels, float* y, size_t out_height,
               size_t out_width, const Finish& finish)
      : x_(x),
        kernels_(kernels),
        depth_(kernels.depth),
        columns_(kernels.columns),
        y_(y),
        out_height_(out_height),
        out_width_(out_width),
        finish_(finish) {}

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
    zeros_ = scratch;
    ZeroFloats(depth_, scratch);
    scratch += hwy::RoundUpTo(depth_, 16);
    const size_t tiles = samples * x_.tiles();
    if (depth_ * columns_ <= kFewKernels) return RunTiles(tiles, scratch, team);
    const bool by_frequency = depth_ * columns_ <= kSomeKernels && tiles >= kManyTiles;
    float* rest = scratch + kFrequencies * Rows(kWideBlock, depth_);
    if (by_frequency) TurnKernels(rest, KernelStride(depth_, columns_), team);
    for (size_t first = 0; first < tiles; first += kWideBlock) {
      const size_t count = std::min(kWideBlock, tiles - first);
      ParallelFor(team, count, 1, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          TurnInput(first + i, i, kTileRows, Rows(kWideBlock, depth_), scratch);
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
  size_t GroupFloats() const { return kTileRows * hwy::RoundUpTo(depth_, kGroup); }

  // All kernels first, then each thread its tiles, block by block.
  void RunTiles(size_t tiles, float* scratch, Team& team) const {
    const size_t stride = KernelStride(depth_, columns_);
    TurnKernels(scratch, stride, team);
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
        for (size_t i = 0; i < count; ++i) TurnInput(first + i, i, high, rows, block);
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
          TurnOutput(first + i, product + i * Apart(columns_), products, 0, columns_);
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
        TurnOutput(first + i, product + i * row, products, 0, columns_);
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
            for (size_t k = 0; k < deep; k += WinogradKernels::kStep) {
              kernels_.template Turn<W>(j, k0 + k, k0 + std::min(deep, k + WinogradKernels::kStep),
                                        kernels_of(j) + k * PanelWidth(j, columns_), stride);
            }
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
          TurnOutput(first + i, product + (i - begin) * row, products, at,
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

  void TurnKernels(float* to, size_t stride, Team& team) const {
    constexpr size_t kStep = WinogradKernels::kStep;
    const size_t steps = hwy::DivCeil(depth_, kStep);
    const size_t grain = 1 + kParallelWork / 8 / (kFrequencies * kStep * kTileColumns);
    ParallelFor(team, steps * PanelCount(columns_), grain, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t j = i / steps, k = i % steps * kStep;
        kernels_.template Turn<W>(j, k, std::min(depth_, k + kStep),
                                  to + j * kTileColumns * depth_ + k * PanelWidth(j, columns_),
                                  stride);
      }
    });
  }

  // Writes a tile as row `i` of the packed rows that register tiles read, `high` rows each.
  void TurnInput(size_t tile, size_t i, size_t high, size_t stride, float* rows) const {
    const TilePixels<W::kTile> pixels(x_, tile, zeros_);
    float* row = rows + i / high * GroupFloats() + i % high * kGroup;
    ForLanes(0, depth_, [&](size_t c, size_t n) HWY_ATTR {
      float* to = row + c / kGroup * kTileRows * kGroup + c % kGroup;
      BothWays<typename W::Input>(
          [&](size_t a, size_t b) HWY_ATTR { return LoadN(pixels.at[a][b] + c, n); },
          [&](size_t a, size_t b, V value)
              HWY_ATTR { hn::StoreU(value, Floats(), to + (a * W::kTile + b) * stride); });
    });
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

  // Columns [first, first + count) of a tile's outputs, from its row of products.
  void TurnOutput(size_t tile, const float* products, size_t stride, size_t first,
                  size_t count) const {
    const size_t in_image = tile % x_.tiles();
    const size_t y0 = in_image / x_.tiles_x * W::kOut, x0 = in_image % x_.tiles_x * W::kOut;
    const size_t rows = std::min(W::kOut, out_height_ - y0);
    const size_t columns = std::min(W::kOut, out_width_ - x0);
    float* to = y_ + ((tile / x_.tiles() * out_height_ + y0) * out_width_ + x0) * columns_ + first;
    const float* biases = finish_.bias ? finish_.bias + first : nullptr;
    ForLanes(0, count, [&](size_t c, size_t n) HWY_ATTR {
      const V bias = biases ? LoadN(biases + c, n) : hn::Zero(Floats());
      BothWays<typename W::Output>(
          [&](size_t a, size_t b)
              HWY_ATTR { return LoadN(products + (a * W::kTile + b) * stride + c, n); },
          [&](size_t a, size_t b, V value) HWY_ATTR {
            if (a >= rows || b >= columns) return;
            value = hn::Add(value, bias);
            if (finish_.relu) value = PositivePart(value);
            StoreN(value, to + (a * out_width_ + b) * columns_ + c, n, finish_.stream);
          });
    });
  }

  const TiledImages x_;
  const WinogradKernels kernels_;
  const size_t depth_, columns_;
  float* const y_;
  const size_t out_height_, out_width_;
  const Finish finish_;
  const float* zeros_ = nullptr;
};

template <class W>
size_t WinogradScratchBy(const ConvShape& s, size_t threads) {
  return std::max(WinogradTask<W>::Scratch(s.in, s.out, threads),
                  WinogradTask<W>::Scratch(s.out, s.in, threads));
}

template <class W>
void WinogradForwardBy(const ConvShape& s, size_t samples, const float* x, const float* weights,
                       float* y, const Finish& finish, float* scratch, Team& team) {
  const TiledImages images = {x,
                              ptrdiff_t(s.height),
                              ptrdiff_t(s.width),
                              s.in,
                              hwy::DivCeil(s.out_height, W::kOut),
                              hwy::DivCeil(s.out_width, W::kOut),
                              ptrdiff_t(W::kOut),
                              -ptrdiff_t(s.padding)};
  WinogradTask<W>(images, {weights, s.in, s.out, false}, y, s.out_height, s.out_width, finish)
      .Run(samples, scratch, team);
}

template <class W>
void WinogradGradInputBy(const ConvShape& s, size_t samples, const float* dy, const float* weights,
                         float* dx, float* scratch, Team& team) {
  const TiledImages images = {dy,
                              ptrdiff_t(s.out_height),
                              ptrdiff_t(s.out_width),
                              s.out,
                              hwy::DivCeil(s.height, W::kOut),
                              hwy::DivCeil(s.width, W::kOut),
                              ptrdiff_t(W::kOut),
                              ptrdiff_t(s.padding) - 2};
  const Finish finish = {.stream = MayStream(dx, samples * s.in_pixels() * s.in, s.in)};
  WinogradTask<W>(images, {weights, s.out, s.in, true}, dx, s.height, s.width, finish)
      .Run(samples, scratch, team);
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
