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

// Rows of A that a thread packs at once: they share the second cache with a panel of B.
constexpr size_t kBlockRows = 384;
static_assert(kBlockRows % kTileRows == 0 && kBlockRows % kWeightRows == 0);
constexpr size_t kBlockFloats = kBlockRows * kDepth + kBlockRows / kWeightRows * kGroup;
static_assert(kDepth % kGroup == 0 && kWeightDepth % kGroup == 0 && kWeightDepth <= kDepth);
constexpr size_t kCachedPanels = 192 * 1024;  // floats

size_t Round(size_t floats) { return hwy::RoundUpTo(floats, 16); }

size_t PanelScratch(size_t depth, size_t columns) { return Round(PanelFloats(depth, columns)); }
size_t MultiplyScratch(size_t threads) { return threads * kBlockFloats; }
size_t MultiplyTransposedScratch(size_t columns, size_t threads) {
  return threads * (kBlockFloats + Round(PanelFloats(kWeightDepth, columns)));
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
      const size_t y = taps.first_y + tap / taps.taps_x * taps.step;
      const size_t x = taps.first_x + tap % taps.taps_x * taps.step;
      const size_t at = j * kTileColumns, width = PanelWidth(j, columns);
      const size_t valid = std::min(width, columns - at);
      const float* from = b + ((y * taps.kernel + x) * columns + at) * tap_depth;
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
// [panel_begin, panel_end) of columns.
struct PatchTask {
  const Patches& patches;
  size_t rows;
  const float* panels;
  size_t columns;
  const Places& places;
  const Finish& finish;

  void Run(size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end,
           float* block) const {
    const size_t first = tile_begin * kTileRows, last = std::min(rows, tile_end * kTileRows);
    const size_t blocks = hwy::DivCeil(last - first, kBlockRows);
    const size_t step = hwy::RoundUpTo(hwy::DivCeil(last - first, blocks), kTileRows);
    const Chunks chunks(patches.depth(), kDepth);
    // Panels that the second cache holds stay there while a block's C goes through all chunks;
    // larger ones are read once, chunk by chunk.
    const bool large = patches.depth() * columns > kCachedPanels;
    const size_t rounds = large ? chunks.count : 1, length = large ? 1 : chunks.count;
    for (size_t round = 0; round < rounds; ++round) {
      for (size_t row = first; row < last; row += step) {
        RunBlock(row, std::min(step, last - row), panel_begin, panel_end, chunks, round,
                 round + length, block);
      }
    }
  }

  void RunBlock(size_t first, size_t count, size_t panel_begin, size_t panel_end,
                const Chunks& chunks, size_t chunk_begin, size_t chunk_end, float* block) const {
    PatchRow sources[kBlockRows];
    float* targets[kBlockRows];
    RowWalker walker(patches, first);
    for (size_t i = 0; i < count; ++i, walker.Next()) {
      sources[i] = RowAt(walker);
      targets[i] = places.first + walker.sample * places.sample_stride +
                   walker.y * places.y_stride + walker.x * places.x_stride;
    }
    for (size_t c = chunk_begin; c < chunk_end; ++c) {
      const size_t begin = chunks.begin(c), end = chunks.begin(c + 1);
      const RowPacker<kGroup> packer(patches, begin, end, kTileRows * kGroup);
      for (size_t i = 0; i < count; ++i) {
        packer.Pack(sources[i],
                    block + i / kTileRows * kTileRows * kDepth + i % kTileRows * kGroup);
      }
      for (size_t j = panel_begin; j < panel_end; ++j) {
        RunPanel(j, begin, end, count, targets, block, c == 0, c + 1 == chunks.count);
      }
    }
  }

  void RunPanel(size_t j, size_t begin, size_t end, size_t count, float* const* targets,
                const float* block, bool is_first, bool is_last) const {
    const size_t width = PanelWidth(j, columns), at = j * kTileColumns;
    const float* b = panels + at * patches.depth() + begin * width;
    Into into = {.rows = targets,
                 .first = at,
                 .columns = std::min(width, columns - at),
                 .add = finish.add || !is_first,
                 .bias = finish.bias,
                 .relu = finish.relu && is_last};
    // A panel that comes from the third cache would stall its first tile: each tile fetches a part
    // of the next one.
    const bool has_next = at + kTileColumns < columns;
    const size_t next_floats = has_next ? (end - begin) * PanelWidth(j + 1, columns) : 0;
    const size_t part = hwy::RoundUpTo(hwy::DivCeil(next_floats * kTileRows, count), kGroup);
    const float* next = panels + (at + kTileColumns) * patches.depth() + begin * kTileColumns;
    for (size_t i = 0; i < count; i += kTileRows) {
      into.rows = targets + i;
      const size_t done = i / kTileRows * part;
      into.next = next + done;
      into.next_floats = std::min(part, next_floats - std::min(next_floats, done));
      const size_t tile_rows = std::min(kTileRows, count - i);
      ChooseTile<Order::kByRow>(tile_rows, width / kLanes)(end - begin, block + i * kDepth, b,
                                                           into);
    }
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
      for (size_t k = 0; k < depth; ++k, walker.Next()) {
        sources[k] = RowAt(walker);
        PackPanelRow(b + (begin + k) * columns, columns, depth, k, panel_begin, panel_end, panels);
      }
      for (size_t row = tile_begin * kWeightRows; row < last; row += kBlockRows) {
        const size_t count = std::min(kBlockRows, last - row);
        PackBlock(sources, row, count, depth, block);
        for (size_t j = panel_begin; j < panel_end; ++j) {
          RunPanel(j, row, count, depth, block, panels, add || chunk > 0);
        }
      }
    }
  }

  // A tile's floats in a block; not a power of two, or tiles would share cache sets.
  static size_t TileFloats(size_t depth) { return depth * kWeightRows + kGroup; }

  // Few tiles at a time: each is a stream of its own while pixels are copied.
  void PackBlock(const PatchRow* sources, size_t first, size_t count, size_t depth,
                 float* block) const {
    constexpr size_t kStreams = 16 * kWeightRows;
    for (size_t i = 0; i < count; i += kStreams) {
      const size_t end = std::min(i + kStreams, count);
      float* to = block + i / kWeightRows * TileFloats(depth);
      const RowPacker<kWeightRows> packer(patches, first + i, first + end, TileFloats(depth));
      for (size_t k = 0; k < depth; ++k) packer.Pack(sources[k], to + k * kWeightRows);
    }
  }

  void RunPanel(size_t j, size_t first, size_t count, size_t depth, const float* block,
                const float* panels, bool add_now) const {
    const size_t width = PanelWidth(j, columns), at = j * kTileColumns;
    float* targets[kWeightRows];
    const Into into = {.rows = targets,
                       .first = at,
                       .columns = std::min(width, columns - at),
                       .add = add_now,
                       .bias = nullptr,
                       .relu = false};
    for (size_t i = 0; i < count; i += kWeightRows) {
      const size_t tile_rows = std::min(kWeightRows, count - i);
      for (size_t r = 0; r < tile_rows; ++r) targets[r] = c + (first + i + r) * columns;
      ChooseTile<Order::kByDepth>(tile_rows, width / kLanes)(
          depth, block + i / kWeightRows * TileFloats(depth), panels + at * depth, into);
    }
  }
};

// Divides the tiles or the panels among the threads, whichever there are more of, and calls
// run(tile_begin, tile_end, panel_begin, panel_end, thread).
template <class F>
void Divide(Team& team, size_t tiles, size_t panels, size_t work, const F& run) {
  const size_t threads = work < kParallelWork ? 1 : static_cast<size_t>(team.size());
  const bool by_tiles = tiles >= panels;
  const size_t blocks = std::min(threads, std::max(tiles, panels));
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
  Divide(
      team, hwy::DivCeil(rows, kTileRows), PanelCount(columns), rows * columns * patches.depth(),
      [&](size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end, size_t thread) {
        task.Run(tile_begin, tile_end, panel_begin, panel_end, scratch + thread * kBlockFloats);
      });
}

void MultiplyTransposedPatches(const Patches& patches, size_t rows, const float* b, size_t columns,
                               float* c, bool add, float* scratch, Team& team) {
  const TransposedTask task{patches, rows, b, columns, c, add};
  const size_t own = MultiplyTransposedScratch(columns, 1);
  Divide(
      team, hwy::DivCeil(patches.depth(), kWeightRows), PanelCount(columns),
      rows * columns * patches.depth(),
      [&](size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end, size_t thread) {
        float* block = scratch + thread * own;
        task.Run(tile_begin, tile_end, panel_begin, panel_end, block, block + kBlockFloats);
      });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
