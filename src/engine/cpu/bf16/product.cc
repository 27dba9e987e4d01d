// Blocked products. A is a matrix of patches that is packed tile by tile as it is needed; panels of
// B are shared by all threads. Threads divide rows or columns of C, or parts of the depth that are
// the same for any number of them: it does not change a bit.
#include "engine/cpu/bf16/product.h"

#include <algorithm>
#include <type_traits>

#include "base/assert.h"
#include "engine/cpu/bf16/patch_tiles.h"
#include "engine/cpu/tiling/divide.h"
#include "engine/cpu/tiling/row_parts.h"

namespace trireme::cpu::bf16 {
namespace {

constexpr size_t kMostRows = 32;      // of a tile
constexpr size_t kMostDepth = 512;    // of a tile
constexpr size_t kBlockRows = 128;    // of C, whose sums a thread goes on with while depth is cut
constexpr size_t kStretchRows = 512;  // the same where B is so large that it comes piece by piece
constexpr size_t kBlockValues = 256;  // of a patch, packed at once for a weight gradient
constexpr size_t kCachedPanels = 512 * 1024;  // BFloats of B that stay in the second cache

size_t CountOf(size_t all, size_t each) { return (all + each - 1) / each; }
size_t RoundUp(size_t n, size_t to) { return CountOf(n, to) * to; }
size_t WholeTiles(size_t lines, size_t each) { return lines / each * each; }

// Chunks of k of about equal length, at most unit.depth, in whole steps.
struct Chunks {
  size_t all, step, count;
  Chunks(const MatrixUnit& unit, size_t depth)
      : all(depth),
        step(RoundUp(CountOf(depth, CountOf(depth, unit.depth)), unit.step)),
        count(CountOf(depth, step)) {
    TRIREME_ASSERT(unit.depth <= kMostDepth && unit.depth % unit.step == 0);
  }
  size_t begin(size_t i) const { return std::min(i * step, all); }
};

// Panels of B, one after another.
struct Panels {
  const MatrixUnit& unit;
  size_t depth, columns;

  size_t count() const { return CountOf(columns, unit.columns); }
  size_t width(size_t j) const { return std::min(unit.columns, columns - j * unit.columns); }
  size_t size() const { return RoundUp(depth, unit.step) * unit.columns; }  // of one
  bool small() const { return depth * columns <= kCachedPanels; }
};

// Whatever a thread does with a unit, between its begin and end.
class Using {
 public:
  explicit Using(const MatrixUnit& unit) : unit_(unit) { unit_.begin(); }
  ~Using() { unit_.end(); }
  Using(const Using&) = delete;

 private:
  const MatrixUnit& unit_;
};

// One thread's share of a product of patches.
template <class From, class To>
struct PatchTask {
  const MatrixUnit& unit;
  const PatchesOf<From>& patches;
  size_t rows;
  const BFloat* data;
  const Panels panels;
  const PlacesOf<To>& places;
  const Finish& finish;

  // Tiles [tile_begin, tile_end) of rows, panels [panel_begin, panel_end) of columns. A tile of A
  // meets all panels while it is in the first cache; the panels come one after another from the
  // second. Larger ones than that holds: as many as it holds meet a stretch of rows.
  void Run(size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end, BFloat* tile,
           float* sums) const {
    const Using use(unit);
    const Chunks chunks(unit, patches.depth());
    const bool small = panels.small();
    const size_t length = small ? chunks.count : 1;
    const size_t group =
        small ? panels.count() : std::max<size_t>(1, kCachedPanels / (chunks.step * unit.columns));
    const size_t last = std::min(rows, tile_end * unit.rows);
    const size_t block = WholeTiles(kBlockRows, unit.rows);
    const size_t stretch = small ? block : kStretchRows / kBlockRows * block;
    for (size_t first = tile_begin * unit.rows; first < last; first += stretch) {
      const size_t end = std::min(last, first + stretch);
      for (size_t chunk = 0; chunk < chunks.count; chunk += length) {
        for (size_t j = panel_begin; j < panel_end; j += group) {
          for (size_t row = first; row < end; row += block) {
            RunBlock(row, std::min(end, row + block), j, std::min(j + group, panel_end), chunks,
                     chunk, chunk + length, tile, sums + (row - first) * panels.columns);
          }
        }
      }
    }
  }

  void RunBlock(size_t row_begin, size_t row_end, size_t panel_begin, size_t panel_end,
                const Chunks& chunks, size_t chunk_begin, size_t chunk_end, BFloat* tile,
                float* sums) const {
    PatchRowOf<From> sources[kBlockRows];
    To* targets[kBlockRows];
    float* partial[kBlockRows];
    RowWalker walker(patches, row_begin);
    for (size_t i = 0; i < row_end - row_begin; ++i, walker.Next()) {
      sources[i] = RowAt(walker);
      targets[i] = places.At(walker);
      partial[i] = sums + i * panels.columns;
    }
    const PatchTiles tiles(unit, patches);
    for (size_t c = chunk_begin; c < chunk_end; ++c) {
      const size_t begin = chunks.begin(c), end = chunks.begin(c + 1);
      for (size_t i = 0; i < row_end - row_begin; i += unit.rows) {
        const size_t count = std::min(unit.rows, row_end - row_begin - i);
        tiles.PackAlong(sources + i, count, begin, end, tile);
        TileTarget into = {.count = count, .before = c > 0 ? partial + i : nullptr};
        if (c + 1 < chunks.count) {
          into.floats = partial + i;
        } else {
          if constexpr (std::is_same_v<To, float>) {
            into.floats = targets + i;
          } else {
            into.bfloats = targets + i;
          }
          into.bias = finish.bias;
          into.relu = finish.relu;
          into.stream = finish.stream;
        }
        for (size_t j = panel_begin; j < panel_end; ++j) {
          into.first = j * unit.columns;
          into.columns = panels.width(j);
          unit.multiply(end - begin, tile, data + j * panels.size() + begin * unit.columns, into);
        }
      }
    }
  }
};

// One thread's share of a weight gradient (wgrad): tiles of rows of C (values of a patch), panels
// of columns.
template <class From, class B>
struct TransposedTask {
  const MatrixUnit& unit;
  const PatchesOf<From>& patches;
  size_t row_begin, row_end;  // the depth of this product
  const B* b;
  size_t columns;
  float* c;
  bool add;

  void Run(size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end, BFloat* block,
           BFloat* packed) const {
    const Using use(unit);
    const size_t last = std::min(patches.depth(), tile_end * unit.rows);
    const size_t step = WholeTiles(kBlockValues, unit.rows);
    const Chunks chunks(unit, row_end - row_begin);
    for (size_t chunk = 0; chunk < chunks.count; ++chunk) {
      const size_t begin = row_begin + chunks.begin(chunk);
      const size_t depth = row_begin + chunks.begin(chunk + 1) - begin;
      const Panels panels{unit, depth, columns};
      const PatchTiles tiles(unit, patches);
      PatchRowOf<From> sources[kMostDepth];
      RowWalker walker(patches, begin);
      for (size_t k = 0; k < depth; ++k, walker.Next()) sources[k] = RowAt(walker);
      for (size_t j = panel_begin; j < panel_end; ++j) PackPanel(panels, begin, j, packed);
      const size_t tile_size = RoundUp(depth, unit.step) * unit.rows;
      for (size_t row = tile_begin * unit.rows; row < last; row += step) {
        const size_t end = std::min(last, row + step);
        tiles.PackAcross(sources, depth, row, end, tile_size, block);
        for (size_t j = panel_begin; j < panel_end; ++j) {
          for (size_t i = 0; row + i < end; i += unit.rows) {
            RunTile(row + i, std::min(unit.rows, end - row - i), depth,
                    block + i / unit.rows * tile_size, panels, j, packed, add || chunk > 0);
          }
        }
      }
    }
  }

  void PackPanel(const Panels& panels, size_t begin, size_t j, BFloat* packed) const {
    const B* lines[kMostDepth];
    for (size_t k = 0; k < panels.depth; ++k) {
      lines[k] = b + (begin + k) * columns + j * unit.columns;
    }
    unit.from<B>().columns_across(lines, panels.width(j), panels.depth, packed + j * panels.size());
  }

  void RunTile(size_t first, size_t count, size_t depth, const BFloat* tile, const Panels& panels,
               size_t j, const BFloat* packed, bool add_now) const {
    float* targets[kMostRows];
    for (size_t r = 0; r < count; ++r) targets[r] = c + (first + r) * columns;
    unit.multiply(depth, tile, packed + j * panels.size(),
                  {.floats = targets,
                   .count = count,
                   .first = j * unit.columns,
                   .columns = panels.width(j),
                   .before = add_now ? targets : nullptr});
  }
};

size_t PatchTile(const MatrixUnit& unit) { return RoundUp(unit.rows * unit.depth, 32); }
// Floats of sums whose depth is cut.
size_t PartialSums(const Panels& panels, size_t rows) {
  if (Chunks(panels.unit, panels.depth).count == 1) return 0;
  return std::min(rows, panels.small() ? kBlockRows : kStretchRows) * panels.columns;
}
size_t WeightBlock(const MatrixUnit& unit) {
  return WholeTiles(kBlockValues, unit.rows) * unit.depth;
}

}  // namespace

size_t PanelScratch(const MatrixUnit& unit, size_t depth, size_t columns) {
  const Panels panels{unit, depth, columns};
  return RoundUp(panels.count() * panels.size(), 32);
}

size_t MultiplyScratch(const MatrixUnit& unit, size_t rows, size_t depth, size_t columns,
                       size_t threads) {
  return threads * (PatchTile(unit) + RoundUp(2 * PartialSums({unit, depth, columns}, rows), 32));
}

// Of one thread.
size_t TransposedScratch(const MatrixUnit& unit, size_t columns) {
  return RoundUp(WeightBlock(unit), 32) + PanelScratch(unit, unit.depth, columns);
}
size_t MultiplyTransposedScratch(const MatrixUnit& unit, size_t rows, size_t depth, size_t columns,
                                 size_t threads) {
  return threads * TransposedScratch(unit, columns) + 2 * RowParts(rows, depth * columns).floats();
}

void PackPanels(const MatrixUnit& unit, const float* b, size_t depth, size_t columns,
                BFloat* panels, Team& team) {
  const Panels all{unit, depth, columns};
  // A stretch of k of one panel at a time.
  constexpr size_t kStretch = 64;
  const size_t stretches = CountOf(depth, kStretch), pieces = stretches * all.count();
  const size_t grain = 1 + kParallelWork / 4 / (unit.columns * kStretch);
  ParallelFor(team, pieces, grain, [&](size_t begin, size_t end) {
    const Using use(unit);
    for (size_t i = begin; i < end; ++i) {
      const size_t j = i / stretches, first = i % stretches * kStretch;
      const size_t count = std::min(kStretch, depth - first);
      const float* lines[kStretch];
      for (size_t k = 0; k < count; ++k) lines[k] = b + (first + k) * columns + j * unit.columns;
      unit.floats.columns_across(lines, all.width(j), count,
                                 panels + j * all.size() + first * unit.columns);
    }
  });
}

void PackTransposedPanels(const MatrixUnit& unit, const float* b, const TapGrid& taps,
                          size_t tap_depth, size_t columns, BFloat* panels, Team& team) {
  const size_t num_taps = taps.taps_y * taps.taps_x;
  const Panels all{unit, num_taps * tap_depth, columns};
  // Pieces of a column within a tap; or, where taps are no whole steps, a step of all taps.
  const bool whole = num_taps == 1 || tap_depth % unit.step == 0;
  const size_t piece = whole ? tap_depth : unit.step, pieces = CountOf(all.depth, piece);
  const size_t grain = 1 + kParallelWork / 8 / (piece * unit.columns);
  ParallelFor(team, pieces * all.count(), grain, [&](size_t begin, size_t end) {
    const Using use(unit);
    for (size_t i = begin; i < end; ++i) {
      const size_t j = i / pieces, first = i % pieces * piece, width = all.width(j);
      const size_t count = std::min(piece, all.depth - first);
      const auto from = [&](size_t column, size_t k) {
        return b + (taps.At(k / tap_depth) * columns + j * unit.columns + column) * tap_depth +
               k % tap_depth;
      };
      const float* lines[kMostRows];
      float values[kMostRows * kMostRows];
      for (size_t column = 0; column < width; ++column) {
        lines[column] = whole ? from(column, first) : values + column * unit.step;
        for (size_t k = 0; !whole && k < count; ++k) {
          values[column * unit.step + k] = *from(column, first + k);
        }
      }
      unit.pack_columns_along(lines, width, count, panels + j * all.size() + first * unit.columns);
    }
  });
}

template <class From, class To>
void MultiplyPatches(const MatrixUnit& unit, const PatchesOf<From>& patches, size_t rows,
                     const BFloat* panels, size_t columns, const PlacesOf<To>& places,
                     const Finish& finish, BFloat* scratch, Team& team) {
  TRIREME_ASSERT(!finish.add);
  const PatchTask<From, To> task{unit,   patches, rows, panels, {unit, patches.depth(), columns},
                                 places, finish};
  const size_t own = MultiplyScratch(unit, rows, patches.depth(), columns, 1);
  const size_t tiles = CountOf(rows, unit.rows), panel_count = task.panels.count();
  const bool by_tiles = tiles >= panel_count;
  const size_t grain = by_tiles ? (task.panels.small() ? kBlockRows : kStretchRows) / unit.rows : 1;
  Divide(
      team, tiles, panel_count, by_tiles, rows * columns * patches.depth(), grain,
      [&](size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end, size_t thread) {
        BFloat* tile = scratch + thread * own;
        task.Run(tile_begin, tile_end, panel_begin, panel_end, tile,
                 reinterpret_cast<float*>(tile + PatchTile(unit)));
      });
}

template <class From, class B>
void MultiplyTransposedPatches(const MatrixUnit& unit, const PatchesOf<From>& patches, size_t rows,
                               const B* b, size_t columns, float* c, bool add, BFloat* scratch,
                               Team& team) {
  using Task = TransposedTask<From, B>;
  const size_t own = TransposedScratch(unit, columns);
  const size_t tiles = CountOf(patches.depth(), unit.rows);
  const size_t panels = CountOf(columns, unit.columns);
  const auto run = [&](const Task& task, size_t tile_begin, size_t tile_end, size_t panel_begin,
                       size_t panel_end, size_t thread) {
    BFloat* block = scratch + thread * own;
    task.Run(tile_begin, tile_end, panel_begin, panel_end, block,
             block + RoundUp(WeightBlock(unit), 32));
  };
  if (const RowParts parts(rows, patches.depth() * columns); parts.count() > 1) {
    float* sums = reinterpret_cast<float*>(scratch + static_cast<size_t>(team.size()) * own);
    ParallelFor(team, parts.count(), 1, [&](size_t begin, size_t end, size_t thread) {
      for (size_t i = begin; i < end; ++i) {
        run({unit, patches, parts.begin(i), parts.begin(i + 1), b, columns,
             sums + i * parts.stride(), false},
            0, tiles, 0, panels, thread);
      }
    });
    return parts.Add(sums, c, add, team);
  }
  const Task task{unit, patches, 0, rows, b, columns, c, add};
  // Each thread reads its part of one matrix and all of the other: the smaller one.
  const bool enough = std::min(tiles, panels) >= static_cast<size_t>(team.size());
  const bool by_tiles = enough ? patches.depth() >= columns : tiles >= panels;
  // With every piece of one matrix the other one is packed again.
  const size_t grain = 2 * kBlockValues / (by_tiles ? unit.rows : unit.columns);
  Divide(team, tiles, panels, by_tiles, rows * columns * patches.depth(), grain,
         [&](size_t tile_begin, size_t tile_end, size_t panel_begin, size_t panel_end,
             size_t thread) { run(task, tile_begin, tile_end, panel_begin, panel_end, thread); });
}

// For each of the two kinds of numbers that images and results may hold.
#define TRIREME_PRODUCTS(One, Other)                                                             \
  template void MultiplyPatches(const MatrixUnit&, const PatchesOf<One>&, size_t, const BFloat*, \
                                size_t, const PlacesOf<Other>&, const Finish&, BFloat*, Team&);  \
  template void MultiplyTransposedPatches(const MatrixUnit&, const PatchesOf<One>&, size_t,      \
                                          const Other*, size_t, float*, bool, BFloat*, Team&);
TRIREME_PRODUCTS(float, float)
TRIREME_PRODUCTS(float, BFloat)
TRIREME_PRODUCTS(BFloat, float)
TRIREME_PRODUCTS(BFloat, BFloat)
#undef TRIREME_PRODUCTS

}  // namespace trireme::cpu::bf16
