// Blocked, packed matrix products. A is a matrix of patches that is packed block by block as it is
// needed; panels of B are shared by all threads. Threads divide rows or columns of C, never the
// depth, so their number does not change a bit.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/product.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/pack-inl.h"
#include "engine/cpu/product-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Rows of C whose sums a thread goes on with while the depth is cut.
constexpr size_t kBlockRows = 96;
constexpr size_t kTileFloats = kTileRows * kDepth;  // of A, packed
// Values of a patch that are packed at once for a weights' gradient.
constexpr size_t kWeightBlock = 16 * kWeightRows;
constexpr size_t kWeightBlockFloats = kWeightBlock * kWeightDepth + 16 * kGroup;
static_assert(kBlockRows % kTileRows == 0 && kDepth % kGroup == 0 && kWeightDepth % kGroup == 0);
constexpr size_t kCachedPanels = 256 * 1024;  // floats of B that stay in the second cache

size_t Round(size_t floats) { return hwy::RoundUpTo(floats, 16); }

size_t PanelScratch(size_t depth, size_t columns) { return Round(PanelFloats(depth, columns)); }
size_t MultiplyScratch(size_t threads) { return threads * kTileFloats; }
size_t MultiplyTransposedScratch(size_t columns, size_t threads) {
  return threads * (kWeightBlockFloats + Round(PanelFloats(kWeightDepth, columns)));
}

// Chunks of k of about equal length, at most `most`, in whole groups: copies stay aligned.
struct Chunks {
  size_t all, step, count;
  Chunks(size_t depth, size_t most)
      : all(depth),
        step(hwy::RoundUpTo(hwy::DivCeil(depth, hwy::DivCeil(depth, most)), kGroup)),
        count(hwy::DivCeil(depth, step)) {}
  size_t begin(size_t i) const { return std::min(i * step, all); }
};

void PackPanels(const float* b, size_t depth, size_t columns, float* panels, Team& team) {
  // Few rows at a time: they come as streams, and a panel's stretch is written in one go.
  constexpr size_t kRows = 16;
  const size_t grain = 1 + kParallelWork / 4 / (columns * kRows);
  ParallelFor(team, hwy::DivCeil(depth, kRows), grain, [&](size_t begin, size_t end) HWY_ATTR {
    for (size_t first = begin * kRows; first < std::min(depth, end * kRows); first += kRows) {
      for (size_t j = 0; j < PanelCount(columns); ++j) {
        for (size_t k = first; k < std::min(depth, first + kRows); ++k) {
          PackPanelRow(b + k * columns, columns, depth, k, j, j + 1, panels);
        }
      }
    }
  });
}

void PackTransposedPanels(const float* b, const TapGrid& taps, size_t tap_depth, size_t columns,
                          float* panels, Team& team) {
  const size_t num_taps = taps.taps_y * taps.taps_x, depth = num_taps * tap_depth;
  const size_t count = num_taps * PanelCount(columns);
  const size_t grain = 1 + kParallelWork / 8 / (tap_depth * kTileColumns);
  ParallelFor(team, count, grain, [&](size_t begin, size_t end) HWY_ATTR {
    for (size_t i = begin; i < end; ++i) {
      const size_t j = i / num_taps, tap = i % num_taps;
      const size_t at = j * kTileColumns, width = PanelWidth(j, columns);
      const size_t valid = std::min(width, columns - at);
      const float* from = b + (taps.At(tap) * columns + at) * tap_depth;
      float* to = panels + at * depth + tap * tap_depth * width;
      Transpose(from, tap_depth, valid, tap_depth, to, width);
      for (size_t k = 0; valid < width && k < tap_depth; ++k) {
        ZeroFloats(width - valid, to + k * width + valid);
      }
    }
  });
}

namespace {

// One thread's share of a product of patches: tiles [tile_begin, tile_end) of rows, panels
// [panel_begin, panel_end) of columns. A tile of A is packed, or read where it lies, and meets all
// panels while it is in the first cache; the panels come one after another from the second.
struct PatchTask {
  const Patches& patches;
  size_t rows;
  const float* panels;
  size_t columns;
  const Places& places;
  const Finish& finish;

  void Run(size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end,
           float* tile) const {
    const Chunks chunks(patches.depth(), kDepth);
    // Panels that the second cache holds stay there while a block's C goes through all chunks; of
    // larger ones as many as it holds meet all rows.
    const bool small = patches.depth() * columns <= kCachedPanels;
    const size_t length = small ? chunks.count : 1;
    const size_t group = small ? PanelCount(columns)
                               : std::max<size_t>(1, kCachedPanels / (chunks.step * kTileColumns));
    for (size_t chunk = 0; chunk < chunks.count; chunk += length) {
      for (size_t j = panel_begin; j < panel_end; j += group) {
        for (size_t row = tile_begin * kTileRows; row < std::min(rows, tile_end * kTileRows);
             row += kBlockRows) {
          const size_t end = std::min({rows, tile_end * kTileRows, row + kBlockRows});
          RunBlock(row, end, j, std::min(j + group, panel_end), chunks, chunk, chunk + length,
                   tile);
        }
      }
    }
  }

  void RunBlock(size_t row_begin, size_t row_end, size_t panel_begin, size_t panel_end,
                const Chunks& chunks, size_t chunk_begin, size_t chunk_end, float* tile) const {
    PatchRow sources[kBlockRows];
    float* targets[kBlockRows];
    RowWalker walker(patches, row_begin);
    for (size_t i = 0; i < row_end - row_begin; ++i, walker.Next()) {
      sources[i] = RowAt(walker);
      targets[i] = places.At(walker);
    }
    for (size_t c = chunk_begin; c < chunk_end; ++c) {
      const size_t begin = chunks.begin(c), depth = chunks.begin(c + 1) - begin;
      const RowPacker<kGroup> packer(patches, begin, begin + depth, kTileRows * kGroup);
      for (size_t i = 0; i < row_end - row_begin; i += kTileRows) {
        const size_t count = std::min(kTileRows, row_end - row_begin - i);
        const bool in_place = count == kTileRows && patches.IsMatrix();
        for (size_t r = 0; !in_place && r < count; ++r) {
          packer.Pack(sources[i + r], tile + r * kGroup);
        }
        const TileOfA a = in_place
                              ? TileOfA{patches.MatrixRow(row_begin + i) + begin, patches.channels}
                              : TileOfA{tile, 0};
        const bool is_last = c + 1 == chunks.count;
        const size_t panel_count = panel_end - panel_begin;
        for (size_t j = panel_begin; j < panel_end; ++j) {
          Ahead ahead;
          if (in_place) {  // while the panels pass, the rows of the next tile come from memory
            const size_t first = kTileRows * (j - panel_begin) / panel_count;
            const size_t last = kTileRows * (j - panel_begin + 1) / panel_count;
            ahead = {.first = a.values + (kTileRows + first) * patches.depth(),
                     .stride = patches.depth(),
                     .floats = depth,
                     .rows = last - first};
          }
          RunTile(a, count, j, begin, depth, targets + i, c == 0, is_last, ahead);
        }
      }
    }
  }

  struct TileOfA {
    const float* values;
    ptrdiff_t stride;  // between rows; 0: packed
  };

  void RunTile(const TileOfA& a, size_t count, size_t j, size_t begin, size_t depth,
               float* const* targets, bool is_first, bool is_last, const Ahead& ahead) const {
    const size_t width = PanelWidth(j, columns), at = j * kTileColumns;
    const float* b = panels + at * patches.depth() + begin * width;
    const Into into = {.rows = targets,
                       .first = at,
                       .columns = std::min(width, columns - at),
                       .add = finish.add || !is_first,
                       .bias = finish.bias,
                       .relu = finish.relu && is_last,
                       .stream = finish.stream && is_first && is_last,
                       .ahead = ahead};
    if (a.stride) return RunInPlace(depth, a.values, size_t(a.stride), b, width / kLanes, into);
    ChooseTile<Order::kByRow>(count, width / kLanes)(depth, a.values, b, into);
  }
};

// One thread's share of a weight gradient: tiles of rows of C (values of a patch), panels of
// columns.
struct TransposedTask {
  const Patches& patches;
  size_t rows;  // the depth of this product
  const float* b;
  size_t columns;
  float* c;
  bool add;

  void Run(size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end, float* block,
           float* panels) const {
    const size_t last = std::min(patches.depth(), tile_end * kWeightRows);
    const Chunks chunks(rows, kWeightDepth);
    for (size_t chunk = 0; chunk < chunks.count; ++chunk) {
      const size_t begin = chunks.begin(chunk), depth = chunks.begin(chunk + 1) - begin;
      PatchRow sources[kWeightDepth];
      RowWalker walker(patches, begin);
      for (size_t k = 0; k < depth; ++k, walker.Next()) sources[k] = RowAt(walker);
      // Some rows at a time: panels are a power of two apart, and one row's parts of all of them
      // would share cache sets.
      for (size_t first = 0; first < depth; first += kGroup) {
        for (size_t j = panel_begin; j < panel_end; ++j) {
          for (size_t k = first; k < std::min(depth, first + kGroup); ++k) {
            PackPanelRow(b + (begin + k) * columns, columns, depth, k, j, j + 1, panels);
          }
        }
      }
      const Next next(*this, tile_begin * kWeightRows, last, panel_begin, panel_end,
                      chunks.begin(chunk + 1), chunks.begin(chunk + 2));
      for (size_t row = tile_begin * kWeightRows; row < last; row += kWeightBlock) {
        const size_t count = std::min(kWeightBlock, last - row);
        PackBlock(sources, row, count, depth, block);
        // A panel stays in the first cache while all tiles pass, which are a quarter of its size.
        for (size_t j = panel_begin; j < panel_end; ++j) {
          for (size_t i = 0; i < count; i += kWeightRows) {
            RunTile(row + i, std::min(kWeightRows, count - i), depth,
                    block + i / kWeightRows * TileFloats(depth), panels, j, add || chunk > 0, next);
          }
        }
      }
    }
  }

  // What this thread will read of the next chunk, rows [begin, end), shared out among its tiles of
  // this one.
  struct Next {
    Ahead of_b, of_a;
    size_t first_row, panel_begin, panels, tiles, tiles_of_b;

    Next(const TransposedTask& t, size_t row, size_t last_row, size_t first_panel,
         size_t last_panel, size_t begin, size_t end)
        : of_b{.first = t.b + begin * t.columns + first_panel * kTileColumns,
               .stride = t.columns,
               .floats =
                   std::min(t.columns, last_panel * kTileColumns) - first_panel * kTileColumns,
               .rows = end - begin},
          first_row(row),
          panel_begin(first_panel),
          panels(last_panel - first_panel),
          tiles(panels * hwy::DivCeil(last_row - row, kWeightRows)) {
      if (t.patches.IsMatrix()) {
        of_a = {.first = t.patches.MatrixRow(begin) + row,
                .stride = t.patches.depth(),
                .floats = last_row - row,
                .rows = end - begin};
      }
      tiles_of_b = tiles * of_b.floats / (of_b.floats + of_a.floats);
    }

    Ahead For(size_t row, size_t panel) const {
      const size_t i = (row - first_row) / kWeightRows * panels + panel - panel_begin;
      return i < tiles_of_b ? Part(of_b, i, tiles_of_b)
                            : Part(of_a, i - tiles_of_b, tiles - tiles_of_b);
    }
  };

  // A tile's floats in a block; not a power of two, or tiles would share cache sets.
  static size_t TileFloats(size_t depth) { return depth * kWeightRows + kGroup; }

  // Each tile is a stream of its own while pixels are copied.
  void PackBlock(const PatchRow* sources, size_t first, size_t count, size_t depth,
                 float* block) const {
    const RowPacker<kWeightRows> packer(patches, first, first + count, TileFloats(depth));
    for (size_t k = 0; k < depth; ++k) packer.Pack(sources[k], block + k * kWeightRows);
  }

  void RunTile(size_t first, size_t count, size_t depth, const float* tile, const float* panels,
               size_t j, bool add_now, const Next& next) const {
    float* targets[kWeightRows];
    for (size_t r = 0; r < count; ++r) targets[r] = c + (first + r) * columns;
    const size_t width = PanelWidth(j, columns), at = j * kTileColumns;
    const Into into = {.rows = targets,
                       .first = at,
                       .columns = std::min(width, columns - at),
                       .add = add_now,
                       .bias = nullptr,
                       .relu = false,
                       .ahead = next.For(first, j)};
    ChooseTile<Order::kByDepth>(count, width / kLanes)(depth, tile, panels + at * depth, into);
  }
};

// Divides the tiles or the panels among the threads and calls
// run(tile_begin, tile_end, panel_begin, panel_end, thread).
template <class F>
void Divide(Team& team, size_t tiles, size_t panels, bool by_tiles, size_t work, const F& run) {
  const size_t threads = work < kParallelWork ? 1 : static_cast<size_t>(team.size());
  const size_t blocks = std::min(threads, by_tiles ? tiles : panels);
  if (blocks <= 1) return run(0, tiles, 0, panels, 0);
  team.Run([&](int thread) {
    const size_t t = static_cast<size_t>(thread);
    if (t >= blocks) return;
    const size_t all = by_tiles ? tiles : panels;
    const size_t begin = all * t / blocks, end = all * (t + 1) / blocks;
    if (by_tiles) {
      run(begin, end, 0, panels, t);
    } else {
      run(0, tiles, begin, end, t);
    }
  });
}

}  // namespace

void MultiplyPatches(const Patches& patches, size_t rows, const float* panels, size_t columns,
                     const Places& places, const Finish& finish, float* scratch, Team& team) {
  const PatchTask task{patches, rows, panels, columns, places, finish};
  const size_t tiles = hwy::DivCeil(rows, kTileRows), panel_count = PanelCount(columns);
  Divide(
      team, tiles, panel_count, tiles >= panel_count, rows * columns * patches.depth(),
      [&](size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end, size_t thread) {
        task.Run(tile_begin, tile_end, panel_begin, panel_end, scratch + thread * kTileFloats);
        if (finish.stream) hwy::FlushStream();
      });
}

void MultiplyTransposedPatches(const Patches& patches, size_t rows, const float* b, size_t columns,
                               float* c, bool add, float* scratch, Team& team) {
  const TransposedTask task{patches, rows, b, columns, c, add};
  const size_t own = MultiplyTransposedScratch(columns, 1);
  const size_t tiles = hwy::DivCeil(patches.depth(), kWeightRows), panels = PanelCount(columns);
  // Each thread reads its part of one matrix and all of the other: the smaller one.
  const bool enough = std::min(tiles, panels) >= static_cast<size_t>(team.size());
  const bool by_tiles = enough ? patches.depth() >= columns : tiles >= panels;
  Divide(
      team, tiles, panels, by_tiles, rows * columns * patches.depth(),
      [&](size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end, size_t thread) {
        float* block = scratch + thread * own;
        task.Run(tile_begin, tile_end, panel_begin, panel_end, block, block + kWeightBlockFloats);
      });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
