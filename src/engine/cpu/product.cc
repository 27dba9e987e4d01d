// Blocked, packed matrix products. A is a matrix of patches that is packed block by block as it is
// needed; panels of B are shared by all threads. Threads divide rows or columns of C, or parts of
// the depth that are the same for any number of them: it does not change a bit.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"
#include "engine/cpu/tiling/divide.h"
#include "engine/cpu/tiling/row_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/product.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/pack-inl.h"
#include "engine/cpu/product-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Tiles of C whose sums a thread goes on with while the depth is cut.
constexpr size_t kBlockTiles = 8;
constexpr size_t kTileFloats = kTileRows * kDepth;  // of A, packed
constexpr size_t kMostDepth = std::max(kDepth, kWeightDepth);
// Values of a patch that are packed at once for a weight gradient, in groups.
constexpr size_t kWeightGroups = 16 * kWeightRows / kWeightGroup;
// Floats from group to group; not a power of two, or groups would share cache sets.
constexpr size_t GroupFloats(size_t depth) { return depth * kWeightGroup + kGroup; }
constexpr size_t kWeightBlockFloats = kWeightGroups * GroupFloats(kMostDepth);
static_assert(kDepth % kGroup == 0 && kWeightDepth % kGroup == 0);
constexpr size_t kCachedPanels = 256 * 1024;  // floats of B that stay in the second cache

size_t Round(size_t floats) { return hwy::RoundUpTo(floats, 16); }

// Whether the second cache holds all panels of B.
bool IsCached(size_t depth, size_t columns) { return depth * columns <= kCachedPanels; }

size_t PanelScratch(size_t depth, size_t columns) {
  return IsCached(depth, columns) ? Round(PanelFloats(depth, columns)) : kCachedPanels;
}
size_t MultiplyScratch(size_t threads) { return threads * kTileFloats; }
// Of one thread.
size_t TransposedScratch(size_t columns) {
  return kWeightBlockFloats + Round(PanelFloats(kMostDepth, columns));
}
size_t MultiplyTransposedScratch(size_t rows, size_t depth, size_t columns, size_t threads) {
  return threads * TransposedScratch(columns) + RowParts(rows, depth * columns).floats();
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

// Panels of a chunk that stay in the second cache.
static_assert(kMostDepth * kTileColumns <= kCachedPanels);
size_t CachedPanels(const Chunks& chunks) { return kCachedPanels / (chunks.step * kTileColumns); }

namespace {

// Channels [begin, end) of one tap of panel j.
void PackTap(const float* b, const TapGrid& taps, size_t tap, size_t tap_depth, size_t begin,
             size_t end, size_t columns, size_t j, float* to) {
  const size_t at = j * kTileColumns, width = PanelWidth(j, columns);
  const size_t valid = std::min(width, columns - at);
  const float* from = b + (taps.At(tap) * columns + at) * tap_depth + begin;
  Transpose(from, tap_depth, valid, end - begin, to, width);
  for (size_t k = 0; valid < width && k < end - begin; ++k) {
    ZeroFloats(width - valid, to + k * width + valid);
  }
}

// Values [begin, end) of k of the panels [first, last) of b, which is `depth` deep.
void PackPart(const Unpacked& b, size_t depth, size_t begin, size_t end, size_t first, size_t last,
              float* to) {
  const auto panel = [&](size_t j) { return to + (j - first) * kTileColumns * (end - begin); };
  if (!b.taps) {
    // Few rows at a time: they come as streams, and a panel's stretch is written in one go.
    for (size_t k = 0; k < end - begin; k += kGroup) {
      for (size_t j = first; j < last; ++j) {
        PackPanel(b.values + begin * b.columns, b.columns, k, std::min(end - begin, k + kGroup), j,
                  panel(j));
      }
    }
    return;
  }
  const size_t tap_depth = depth / b.taps->count();
  for (size_t j = first; j < last; ++j) {
    for (size_t k = begin; k < end;) {
      const size_t tap = k / tap_depth, next = std::min(end, (tap + 1) * tap_depth);
      PackTap(b.values, *b.taps, tap, tap_depth, k - tap * tap_depth, next - tap * tap_depth,
              b.columns, j, panel(j) + (k - begin) * PanelWidth(j, b.columns));
      k = next;
    }
  }
}

// Rows of C in tiles of about equal height.
struct Tiles {
  size_t rows, count, height;
  explicit Tiles(size_t all)
      : rows(all), count(hwy::DivCeil(all, kTileRows)), height(hwy::DivCeil(all, count)) {}
  size_t begin(size_t tile) const { return std::min(tile * height, rows); }
};

// One thread's share of a product of patches: tiles of rows, panels of columns. A tile of A is
// packed and meets all panels while it is in the first cache (rows read where they lie are apart by
// what often makes them share cache sets); the panels come one after another from the second.
struct PatchTask {
  const Patches& patches;
  const Tiles tiles;
  const Chunks chunks;
  size_t columns;
  const Places& places;
  const Finish& finish;
  const float* panels;
  size_t first, deep;     // values of k that the panels hold
  const float* positive;  // null, or 0 belongs where it is not positive

  void Run(size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end,
           size_t chunk_begin, size_t chunk_end, float* tile) const {
    for (size_t i = tile_begin; i < tile_end; i += kBlockTiles) {
      RunBlock(tiles.begin(i), tiles.begin(std::min(i + kBlockTiles, tile_end)), panel_begin,
               panel_end, chunk_begin, chunk_end, tile);
    }
  }

 private:
  void RunBlock(size_t row_begin, size_t row_end, size_t panel_begin, size_t panel_end,
                size_t chunk_begin, size_t chunk_end, float* tile) const {
    PatchRow sources[kBlockTiles * kTileRows];
    float* targets[kBlockTiles * kTileRows];
    RowWalker walker(patches, row_begin);
    for (size_t i = 0; i < row_end - row_begin; ++i, walker.Next()) {
      sources[i] = RowAt(walker);
      targets[i] = places.At(walker);
    }
    for (size_t c = chunk_begin; c < chunk_end; ++c) {
      const size_t begin = chunks.begin(c), depth = chunks.begin(c + 1) - begin;
      const RowPacker<kGroup> packer(patches, begin, begin + depth, kTileRows * kGroup);
      for (size_t i = 0; i < row_end - row_begin; i += tiles.height) {
        const size_t count = std::min(tiles.height, row_end - row_begin - i);
        if (patches.IsMatrix()) {
          PackMatrix(patches.MatrixRow(row_begin + i) + begin, patches.depth(), count, depth, tile);
        } else {
          for (size_t r = 0; r < count; ++r) packer.Pack(sources[i + r], tile + r * kGroup);
        }
        // Meanwhile the rows of the next tile come from memory.
        Fetcher fetcher({Rows(row_begin + i + tiles.height, begin, depth)},
                        (panel_end - panel_begin) * hwy::DivCeil(depth, kGroup));
        const bool is_last = c + 1 == chunks.count;
        for (size_t j = panel_begin; j < panel_end; ++j) {
          RunTile(tile, count, j, begin, depth, targets + i, c == 0, is_last, fetcher);
        }
      }
    }
  }

  // Values [begin, begin + depth) of the tile of rows from `row` on.
  Ahead Rows(size_t row, size_t begin, size_t depth) const {
    if (!patches.IsMatrix()) return {};
    return {.first = patches.MatrixRow(row) + begin,
            .stride = patches.depth(),
            .floats = depth,
            .rows = tiles.height};
  }

  void RunTile(const float* tile, size_t count, size_t j, size_t begin, size_t depth,
               float* const* targets, bool is_first, bool is_last, Fetcher& fetcher) const {
    const size_t width = PanelWidth(j, columns), at = j * kTileColumns;
    const float* b = panels + at * deep + (begin - first) * width;
    const Into into = {.rows = targets,
                       .first = at,
                       .columns = std::min(width, columns - at),
                       .add = finish.add || !is_first,
                       .bias = finish.bias,
                       .relu = finish.relu && is_last,
                       .stream = finish.stream && is_first && is_last,
                       .positive = is_last ? positive : nullptr,
                       .origin = places.first,
                       .fetcher = &fetcher};
    ChooseTile<Order::kByRow>(count, width / kLanes)(depth, tile, b, into);
  }
};

// How a weight gradient (wgrad) is computed. Sums that the second cache holds: a panel meets all
// tiles of a block while it is in the first. More sums are gone through along their rows, as memory
// likes it: a tile, as high as registers allow, meets all panels.
struct TransposedOrder {
  bool by_tiles;
  size_t height, group;  // rows of a tile; those that are packed side by side
  size_t depth;

  explicit TransposedOrder(size_t sums)
      : by_tiles(sums > kManySums),
        height(by_tiles ? kTileRows : kWeightRows),
        group(by_tiles ? kTileRows : kWeightGroup),
        depth(by_tiles ? kDepth : kWeightDepth) {}

  size_t block() const { return kWeightGroups * group; }

 private:
  static constexpr size_t kManySums = 512 * 1024;  // as many as a second cache of 2 MB holds
};

// One thread's share of a weight gradient: tiles of rows of C (values of a patch), panels of
// columns.
struct TransposedTask {
  const Patches& patches;
  TransposedOrder order;
  size_t row_begin, row_end;  // the depth of this product
  const float* b;
  size_t columns;
  float* c;
  bool add;

  void Run(size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end, float* block,
           float* panels) const {
    const Chunks chunks(row_end - row_begin, order.depth);
    const size_t group = CachedPanels(chunks);
    for (size_t j = panel_begin; j < panel_end; j += group) {
      for (size_t chunk = 0; chunk < chunks.count; ++chunk) {
        RunChunk(tile_begin * order.height, std::min(patches.depth(), tile_end * order.height), j,
                 std::min(panel_end, j + group), chunks, chunk, block, panels);
      }
    }
  }

 private:
  // Rows [first_row, last) of C, by one chunk of depth.
  void RunChunk(size_t first_row, size_t last, size_t panel_begin, size_t panel_end,
                const Chunks& chunks, size_t chunk, float* block, float* panels) const {
    const size_t begin = row_begin + chunks.begin(chunk);
    const size_t next_begin = row_begin + chunks.begin(chunk + 1);
    const size_t next_end = row_begin + chunks.begin(chunk + 2), depth = next_begin - begin;
    PatchRow sources[kMostDepth];
    RowWalker walker(patches, begin);
    for (size_t k = 0; k < depth; ++k, walker.Next()) sources[k] = RowAt(walker);
    // Some rows at a time: panels are a power of two apart, and one row's parts of all of them
    // would share cache sets.
    for (size_t first = 0; first < depth; first += kGroup) {
      for (size_t j = panel_begin; j < panel_end; ++j) {
        PackPanel(b + begin * columns, columns, first, std::min(depth, first + kGroup), j,
                  panels + j * kTileColumns * depth);
      }
    }
    const size_t step = order.block(), blocks = hwy::DivCeil(last - first_row, step);
    for (size_t row = first_row; row < last; row += step) {
      const size_t end = std::min(row + step, last);
      if (order.by_tiles) {
        PackBlock<kTileRows>(sources, row, end, depth, block);
      } else {
        PackBlock<kWeightGroup>(sources, row, end, depth, block);
      }
      // Meanwhile the values of the next block are fetched, and a share of the next chunk's
      // panels: no more than the second cache holds besides the sums.
      Fetcher fetcher({end == last ? PartOfA(first_row, last, next_begin, next_end)
                                   : PartOfA(end, last, begin, begin + depth),
                       Part(PartOfB(panel_begin, panel_end, next_begin, next_end),
                            (row - first_row) / step, blocks)},
                      (panel_end - panel_begin) * hwy::DivCeil(end - row, order.height) *
                          hwy::DivCeil(depth, kGroup));
      const auto run = [&](size_t i, size_t j) {
        RunTile(i, std::min(order.height, end - i), depth,
                block + (i - row) / order.group * GroupFloats(depth) + (i - row) % order.group,
                panels, j, add || chunk > 0, fetcher);
      };
      if (order.by_tiles) {
        for (size_t i = row; i < end; i += order.height) {
          for (size_t j = panel_begin; j < panel_end; ++j) run(i, j);
        }
      } else {
        for (size_t j = panel_begin; j < panel_end; ++j) {
          for (size_t i = row; i < end; i += order.height) run(i, j);
        }
      }
    }
  }

  // Rows [begin, end) of both matrices: values of a block from `first` on, columns of panels.
  Ahead PartOfA(size_t first, size_t last, size_t begin, size_t end) const {
    if (!patches.IsMatrix()) return {};
    return {.first = patches.MatrixRow(begin) + first,
            .stride = patches.depth(),
            .floats = std::min(order.block(), last - first),
            .rows = end - begin};
  }
  Ahead PartOfB(size_t first_panel, size_t last_panel, size_t begin, size_t end) const {
    const size_t at = first_panel * kTileColumns;
    return {.first = b + begin * columns + at,
            .stride = columns,
            .floats = std::min(columns, last_panel * kTileColumns) - at,
            .rows = end - begin};
  }

  // Values [first, last) of patches; each group is a stream of its own while pixels are copied.
  template <size_t G>
  void PackBlock(const PatchRow* sources, size_t first, size_t last, size_t depth,
                 float* block) const {
    const RowPacker<G> packer(patches, first, last, GroupFloats(depth));
    for (size_t k = 0; k < depth; ++k) packer.Pack(sources[k], block + k * kWeightGroup);
  }

  void RunTile(size_t first, size_t count, size_t depth, const float* tile, const float* panels,
               size_t j, bool add_now, Fetcher& fetcher) const {
    float* targets[kTileRows];  // the most that an order takes
    for (size_t r = 0; r < count; ++r) targets[r] = c + (first + r) * columns;
    const size_t width = PanelWidth(j, columns), at = j * kTileColumns;
    const Into into = {.rows = targets,
                       .first = at,
                       .columns = std::min(width, columns - at),
                       .add = add_now,
                       .bias = nullptr,
                       .relu = false,
                       .fetcher = &fetcher};
    ChooseTile<Order::kByDepth>(count, width / kLanes)(depth, tile, panels + at * depth, into);
  }
};

}  // namespace

void MultiplyPatches(const Patches& patches, size_t rows, const Unpacked& b, float* panels,
                     const Places& places, const Finish& finish, float* scratch, Team& team,
                     const float* positive) {
  const size_t depth = patches.depth(), count = PanelCount(b.columns);
  const Tiles tiles(rows);
  const Chunks chunks(depth, kDepth);
  // Panels that the second cache holds stay there while a block's C goes through all chunks. Of
  // larger ones as many as it holds, of one chunk, meet all rows.
  const bool small = IsCached(depth, b.columns);
  const auto team_size = static_cast<size_t>(team.size());
  if (small && team_size > 1 && tiles.count < std::min(count, 4 * team_size)) {
    // So few rows are multiplied in the time that it takes to hand over panels from the cache of
    // the thread that packed them. Each packs those that it multiplies, and all of A.
    const PatchTask task{patches, tiles,  chunks, b.columns, places,
                         finish,  panels, 0,      depth,     positive};
    const bool divides = rows * b.columns * depth >= kParallelWork;
    // An equal share; of an odd number of panels two threads could not have one that is rounded up.
    const size_t share = std::min(hwy::DivCeil(count, team_size), count / 2);
    const size_t grain = divides ? share : count;
    return ParallelFor(team, count, grain, [&](size_t begin, size_t end, size_t thread) {
      PackPart(b, depth, 0, depth, begin, end, panels + begin * kTileColumns * depth);
      task.Run(0, tiles.count, begin, end, 0, chunks.count, scratch + thread * kTileFloats);
      if (finish.stream) hwy::FlushStream();
    });
  }
  const size_t length = small ? chunks.count : 1;
  const size_t groups = small ? 1 : hwy::DivCeil(count, CachedPanels(chunks));
  for (size_t c = 0; c < chunks.count; c += length) {
    const size_t k_begin = chunks.begin(c), k_end = chunks.begin(c + length);
    for (size_t group = 0; group < groups; ++group) {
      const size_t first = count * group / groups, last = count * (group + 1) / groups;
      const size_t at = first * kTileColumns;
      const size_t columns = std::min(b.columns, last * kTileColumns) - at;
      const size_t grain = 1 + kParallelWork / 16 / ((k_end - k_begin) * kTileColumns);
      ParallelFor(team, last - first, grain, [&](size_t begin, size_t end) {
        PackPart(b, depth, k_begin, k_end, first + begin, first + end,
                 panels + begin * kTileColumns * (k_end - k_begin));
      });
      Places part_places = places;
      part_places.first += at;
      Finish part_finish = finish;
      if (finish.bias) part_finish.bias += at;
      const float* part_positive = positive ? positive + at : nullptr;
      const PatchTask task{patches,     tiles,  chunks,  columns,         part_places,
                           part_finish, panels, k_begin, k_end - k_begin, part_positive};
      // By panels every piece packs all of A again.
      const bool by_tiles = tiles.count >= std::min(last - first, 4 * team_size);
      // Blocks of tiles go through all chunks; without, small pieces leave less to wait for.
      const size_t blocks = tiles.count / (kBlockTiles / 2);
      Divide(team, tiles.count, last - first, by_tiles, rows * columns * (k_end - k_begin),
             by_tiles && small && blocks >= 4 * team_size ? kBlockTiles / 2 : 1,
             [&](size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end,
                 size_t thread) {
               task.Run(tile_begin, tile_end, panel_begin, panel_end, c, c + length,
                        scratch + thread * kTileFloats);
               if (finish.stream) hwy::FlushStream();
             });
    }
  }
}

void MultiplyTransposedPatches(const Patches& patches, size_t rows, const float* b, size_t columns,
                               float* c, bool add, float* scratch, Team& team) {
  const size_t own = TransposedScratch(columns);
  const TransposedOrder order(patches.depth() * columns);
  const size_t tiles = hwy::DivCeil(patches.depth(), order.height), panels = PanelCount(columns);
  const auto run = [&](const TransposedTask& task, size_t tile_begin, size_t tile_end,
                       size_t panel_begin, size_t panel_end, size_t thread) {
    float* block = scratch + thread * own;
    task.Run(tile_begin, tile_end, panel_begin, panel_end, block, block + kWeightBlockFloats);
  };
  if (const RowParts parts(rows, patches.depth() * columns); parts.count() > 1) {
    float* sums = scratch + static_cast<size_t>(team.size()) * own;
    ParallelFor(team, parts.count(), 1, [&](size_t begin, size_t end, size_t thread) {
      for (size_t i = begin; i < end; ++i) {
        run({patches, order, parts.begin(i), parts.begin(i + 1), b, columns,
             sums + i * parts.stride(), false},
            0, tiles, 0, panels, thread);
      }
    });
    return parts.Add(sums, c, add, team);
  }
  const TransposedTask task{patches, order, 0, rows, b, columns, c, add};
  // Each thread reads its part of one matrix and all of the other: the smaller one.
  const bool enough = std::min(tiles, panels) >= static_cast<size_t>(team.size());
  const bool by_tiles = enough ? patches.depth() >= columns : tiles >= panels;
  // With every piece of one matrix the other one is packed again.
  const size_t grain = 2 * order.block() / (by_tiles ? order.height : kTileColumns);
  Divide(team, tiles, panels, by_tiles, rows * columns * patches.depth(), grain,
         [&](size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end,
             size_t thread) { run(task, tile_begin, tile_end, panel_begin, panel_end, thread); });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
