// Products of one head of attention: rows of queries, keys and values are packed in the order in
// which tiles read them, in float32 or for a unit that multiplies bf16. All stretches of packed
// values begin with a cache line.
#if defined(TRIREME_ENGINE_CPU_ATTENTION_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_ATTENTION_PRODUCTS_INL_H_
#undef TRIREME_ENGINE_CPU_ATTENTION_PRODUCTS_INL_H_
#else
#define TRIREME_ENGINE_CPU_ATTENTION_PRODUCTS_INL_H_
#endif

#include <algorithm>

#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/pack-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Both kinds have the same functions. A (its rows or, turned, its columns) times B (its rows, or
// rows that are its columns); sizes are those of packed values.
class FloatProducts {
 public:
  using Packed = float;
  static constexpr size_t kQueries = 4 * kTileRows;  // of a block, in whole tiles

  size_t TilesSize(size_t rows, size_t depth) const {
    return hwy::DivCeil(rows, kTileRows) * TileFloats(depth);
  }
  size_t TurnedSize(size_t rows, size_t depth) const {
    return hwy::DivCeil(rows, kTileRows) * depth * kWeightGroup;
  }
  size_t PanelsSize(size_t depth, size_t columns) const { return PanelFloats(depth, columns); }

  void PackTiles(const float* from, size_t stride, size_t rows, size_t depth, float* to) const {
    for (size_t r = 0; r < rows; r += kTileRows, to += TileFloats(depth)) {
      PackMatrix(from + r * stride, stride, std::min(kTileRows, rows - r), depth, to);
    }
  }
  // `depth` rows of `from`, whose columns are A's rows.
  void PackTurned(const float* from, size_t stride, size_t rows, size_t depth, float* to) const {
    for (size_t r = 0; r < rows; r += kTileRows, to += depth * kWeightGroup) {
      const size_t count = std::min(kTileRows, rows - r);
      for (size_t k = 0; k < depth; ++k) {
        CopyFloats(from + k * stride + r, count, to + k * kWeightGroup);
      }
    }
  }
  // `columns` rows of `from`, which are B's columns.
  void PackColumns(const float* from, size_t stride, size_t columns, size_t depth,
                   float* to) const {
    for (size_t at = 0; at < columns; at += kTileColumns, to += kTileColumns * depth) {
      const size_t width = PanelWidth(at / kTileColumns, columns);
      const size_t valid = std::min(width, columns - at);
      Transpose(from + at * stride, stride, valid, depth, to, width);
      for (size_t k = 0; valid < width && k < depth; ++k) {
        ZeroFloats(width - valid, to + k * width + valid);
      }
    }
  }
  void PackPanels(const float* from, size_t stride, size_t depth, size_t columns, float* to) const {
    for (size_t at = 0; at < columns; at += kTileColumns) {
      const size_t width = PanelWidth(at / kTileColumns, columns);
      for (size_t k = 0; k < depth; ++k) {
        for (size_t v = 0; v < width; v += kLanes) {
          const size_t n = std::min(kLanes, columns - at - v);
          StoreAll(LoadN(from + k * stride + at + v, n), to + at * depth + k * width + v);
        }
      }
    }
  }

  // c (+)= A * B.
  void Multiply(const float* tiles, size_t rows, size_t depth, const float* panels, size_t columns,
                float* c, size_t stride, bool add) const {
    Run<Order::kByRow>(tiles, TileFloats(depth), rows, depth, panels, columns, c, stride, add);
  }
  void MultiplyTurned(const float* tiles, size_t rows, size_t depth, const float* panels,
                      size_t columns, float* c, size_t stride, bool add) const {
    Run<Order::kByDepth>(tiles, depth * kWeightGroup, rows, depth, panels, columns, c, stride, add);
  }

  // Around all that a thread does.
  void Begin() const {}
  void End() const {}

 private:
  static constexpr size_t TileFloats(size_t depth) {
    return kTileRows * hwy::RoundUpTo(depth, kGroup);
  }

  template <Order kOrder>
  static void Run(const float* tiles, size_t tile_floats, size_t rows, size_t depth,
                  const float* panels, size_t columns, float* c, size_t stride, bool add) {
    for (size_t r = 0; r < rows; r += kTileRows, tiles += tile_floats) {
      const size_t count = std::min(kTileRows, rows - r);
      float* targets[kTileRows];
      for (size_t i = 0; i < count; ++i) targets[i] = c + (r + i) * stride;
      for (size_t at = 0; at < columns; at += kTileColumns) {
        const size_t width = PanelWidth(at / kTileColumns, columns);
        const Into into = {.rows = targets,
                           .first = at,
                           .columns = std::min(width, columns - at),
                           .add = add,
                           .bias = nullptr,
                           .relu = false};
        ChooseTile<kOrder>(count, width / kLanes)(depth, tiles, panels + at * depth, into);
      }
    }
  }
};

class UnitProducts {
 public:
  using Packed = BFloat;
  static constexpr size_t kQueries = 64;

  explicit UnitProducts(const MatrixUnit& unit) : unit_(unit) {}

  size_t TilesSize(size_t rows, size_t depth) const {
    return hwy::RoundUpTo(rows, unit_.rows) * Deep(depth);
  }
  size_t TurnedSize(size_t rows, size_t depth) const { return TilesSize(rows, depth); }
  size_t PanelsSize(size_t depth, size_t columns) const {
    return hwy::RoundUpTo(columns, unit_.columns) * Deep(depth);
  }

  template <class T>
  void PackTiles(const T* from, size_t stride, size_t rows, size_t depth, BFloat* to) const {
    for (size_t r = 0; r < rows; r += unit_.rows, to += unit_.rows * Deep(depth)) {
      const T* lines[kMostLines];
      const size_t count = std::min(unit_.rows, rows - r);
      for (size_t i = 0; i < count; ++i) lines[i] = from + (r + i) * stride;
      unit_.from<T>().rows_along(lines, count, depth, to);
    }
  }
  template <class T>
  void PackTurned(const T* from, size_t stride, size_t rows, size_t depth, BFloat* to) const {
    PackAcross(unit_.from<T>().rows_across, unit_.rows, from, stride, rows, depth, to);
  }
  template <class T>
  void PackPanels(const T* from, size_t stride, size_t depth, size_t columns, BFloat* to) const {
    PackAcross(unit_.from<T>().columns_across, unit_.columns, from, stride, columns, depth, to);
  }
  // Units take columns of floats only: a step at a time.
  template <class T>
  void PackColumns(const T* from, size_t stride, size_t columns, size_t depth, BFloat* to) const {
    for (size_t at = 0; at < columns; at += unit_.columns, to += unit_.columns * Deep(depth)) {
      const size_t width = std::min(unit_.columns, columns - at);
      for (size_t k = 0; k < depth; k += unit_.step) {
        const size_t count = std::min(unit_.step, depth - k);
        const float* lines[kMostLines];
        HWY_ALIGN float values[kMostLines * kMostLines];
        for (size_t i = 0; i < width; ++i) {
          lines[i] = AsFloats(from + (at + i) * stride + k, count, values + i * unit_.step);
        }
        unit_.pack_columns_along(lines, width, count, to + k * unit_.columns);
      }
    }
  }

  void Multiply(const BFloat* tiles, size_t rows, size_t depth, const BFloat* panels,
                size_t columns, float* c, size_t stride, bool add) const {
    for (size_t r = 0; r < rows; r += unit_.rows, tiles += unit_.rows * Deep(depth)) {
      float* targets[kMostLines];
      const size_t count = std::min(unit_.rows, rows - r);
      for (size_t i = 0; i < count; ++i) targets[i] = c + (r + i) * stride;
      TileTarget into = {.floats = targets, .count = count, .before = add ? targets : nullptr};
      for (size_t at = 0; at < columns; at += unit_.columns) {
        into.first = at;
        into.columns = std::min(unit_.columns, columns - at);
        unit_.multiply(depth, tiles, panels + at * Deep(depth), into);
      }
    }
  }
  void MultiplyTurned(const BFloat* tiles, size_t rows, size_t depth, const BFloat* panels,
                      size_t columns, float* c, size_t stride, bool add) const {
    Multiply(tiles, rows, depth, panels, columns, c, stride, add);
  }

  void Begin() const { unit_.begin(); }
  void End() const { unit_.end(); }

 private:
  static constexpr size_t kMostLines = 32, kMostDepth = 128;

  size_t Deep(size_t depth) const { return hwy::RoundUpTo(depth, unit_.step); }

  // `depth` rows, of which each tile takes its columns: all at once, up to kMostDepth rows.
  template <class T>
  void PackAcross(MatrixUnit::Pack<T> pack, size_t each, const T* from, size_t stride, size_t lines,
                  size_t depth, BFloat* to) const {
    const T* rows[kMostDepth];
    for (size_t at = 0; at < lines; at += each, to += each * Deep(depth)) {
      for (size_t k = 0; k < depth; ++k) rows[k] = from + k * stride + at;
      pack(rows, std::min(each, lines - at), depth, to);
    }
  }

  static const float* AsFloats(const float* from, size_t, float*) { return from; }
  static const float* AsFloats(const BFloat* from, size_t n, float* to) {
    ForLanes(0, n,
             [&](size_t i, size_t m) TRIREME_INLINED { StoreN(LoadN(from + i, m), to + i, m); });
    return to;
  }

  const MatrixUnit& unit_;
};

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
