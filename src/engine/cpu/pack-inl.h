// Copies of parts of A and B in the order in which tiles read them.
#if defined(TRIREME_ENGINE_CPU_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_PACK_INL_H_
#undef TRIREME_ENGINE_CPU_PACK_INL_H_
#else
#define TRIREME_ENGINE_CPU_PACK_INL_H_
#endif

#include <algorithm>
#include <bit>

#include "engine/cpu/tile-inl.h"
#include "engine/cpu/tiling/patches.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

HWY_INLINE void CopyFloats(const float* HWY_RESTRICT from, size_t n, float* HWY_RESTRICT to) {
  ForLanes(0, n, [&](size_t i, size_t part) { StoreN(LoadN(from + i, part), to + i, part); });
}
// Exactly N floats; zeros if `from` is null.
template <size_t N>
HWY_INLINE void CopyExactly(const float* HWY_RESTRICT from, float* HWY_RESTRICT to) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (N > kLanes / 2 && N < kLanes) {  // one masked copy, not three
    const FirstLanes lanes(N);
    return lanes.Store(from ? lanes.Load(from) : hn::Zero(Floats()), to);
  }
#endif
  constexpr size_t kHere = std::min<size_t>(kLanes, std::bit_floor(N));
  const hn::FixedTag<float, kHere> d;
  hn::StoreU(from ? hn::LoadU(d, from) : hn::Zero(d), d, to);
  if constexpr (N > kHere) CopyExactly<N - kHere>(from ? from + kHere : nullptr, to + kHere);
}
HWY_INLINE void ZeroFloats(size_t n, float* to) {
  ForLanes(0, n, [&](size_t i, size_t part) { StoreN(hn::Zero(Floats()), to + i, part); });
}

HWY_INLINE void CopyOrZero(const float* from, size_t n, float* to) {
  if (from) {
    CopyFloats(from, n, to);
  } else {
    ZeroFloats(n, to);
  }
}

// Calls copy(from, at, n) for the stretches that make up values [begin, end) of a row of patches:
// n floats at `from` (null: zeros) are values at, at + 1, ... Taps that are neighbours in the image
// are one stretch.
template <class F>
HWY_INLINE void ForRuns(const Patches& p, const PatchRow& row, size_t begin, size_t end,
                        const F& copy) {
  const auto cut = [&](const float* from, ptrdiff_t at, ptrdiff_t length) TRIREME_INLINED {
    const ptrdiff_t first = std::max<ptrdiff_t>(at, begin);
    const ptrdiff_t last = std::min<ptrdiff_t>(at + length, end);
    if (first < last)
      copy(from ? from + (first - at) : nullptr, size_t(first), size_t(last - first));
  };
  const ptrdiff_t taps_x = static_cast<ptrdiff_t>(p.taps_x), line = taps_x * p.channels;
  for (ptrdiff_t tap_y = ptrdiff_t(begin) / line; tap_y * line < ptrdiff_t(end); ++tap_y) {
    const ptrdiff_t y = row.y + tap_y * p.tap_step, at = tap_y * line;
    if (y < 0 || y >= p.height) {
      cut(nullptr, at, line);
      continue;
    }
    const float* pixels = row.image + y * p.width * p.channels;
    if (p.tap_step == 1 && row.x >= 0 && row.x + taps_x <= p.width) {
      cut(pixels + row.x * p.channels, at, line);
    } else if (p.tap_step == 1) {
      const ptrdiff_t before = std::clamp<ptrdiff_t>(-row.x, 0, taps_x);
      const ptrdiff_t inside = std::clamp<ptrdiff_t>(p.width - row.x, before, taps_x);
      cut(nullptr, at, before * p.channels);
      cut(pixels + (row.x + before) * p.channels, at + before * p.channels,
          (inside - before) * p.channels);
      cut(nullptr, at + inside * p.channels, (taps_x - inside) * p.channels);
    } else {
      for (ptrdiff_t tap_x = 0; tap_x < taps_x; ++tap_x) {
        const ptrdiff_t x = row.x - tap_x;
        cut(x < 0 || x >= p.width ? nullptr : pixels + x * p.channels, at + tap_x * p.channels,
            p.channels);
      }
    }
  }
}

// Copies n floats (or zeros) into groups of G that stand `stride` apart; `at` is the place of the
// first one, counted without the gaps.
template <size_t G>
HWY_INLINE void CopyGrouped(const float* HWY_RESTRICT from, size_t n, size_t at, size_t stride,
                            float* HWY_RESTRICT to) {
  to += at / G * stride;
  if (const size_t in_group = at % G) {
    const size_t part = std::min(n, G - in_group);
    CopyOrZero(from, part, to + in_group);
    if (from) from += part;
    to += stride;
    n -= part;
  }
  if (from) {
    for (; n >= G; n -= G, from += G, to += stride) CopyExactly<G>(from, to);
  } else {
    for (; n >= G; n -= G, to += stride) CopyExactly<G>(nullptr, to);
  }
  if (n) CopyOrZero(from, n, to);
}

// Copies values [begin, end) of rows of patches into groups of G that stand `stride` apart. Rows
// that lie inside the image all consist of the same pieces, which are found once.
template <size_t G>
class RowPacker {
 public:
  RowPacker(const Patches& p, size_t begin, size_t end, size_t stride)
      : patches_(p), begin_(begin), end_(end), stride_(stride) {
    const ptrdiff_t last_y = (ptrdiff_t(p.taps_y) - 1) * p.tap_step;
    const ptrdiff_t last_x = (ptrdiff_t(p.taps_x) - 1) * p.tap_step;
    low_y_ = std::min<ptrdiff_t>(0, last_y), high_y_ = std::max<ptrdiff_t>(0, last_y);
    low_x_ = std::min<ptrdiff_t>(0, last_x), high_x_ = std::max<ptrdiff_t>(0, last_x);
    if (ptrdiff_t(p.taps_y) > p.height || ptrdiff_t(p.taps_x) > p.width) {
      count_ = kMost + 1;  // no row lies inside
      return;
    }
    odd_ = p.tap_step == 1 && p.depth() <= kMostOdd && p.taps_x * size_t(p.channels) % kGroup != 0;
    const PatchRow inside = {p.image, -low_y_, -low_x_};
    const float* first = p.image + (inside.y * p.width + inside.x) * p.channels;
    ForRuns(p, inside, begin, end,
            [&](const float* from, size_t at, size_t n) { Cut(from - first, at - begin, n); });
  }

  HWY_INLINE void Pack(const PatchRow& row, float* HWY_RESTRICT to) const {
    const Patches& p = patches_;
    if (count_ <= kMost && row.y + low_y_ >= 0 && row.y + high_y_ < p.height &&
        row.x + low_x_ >= 0 && row.x + high_x_ < p.width) {
      const float* HWY_RESTRICT from = row.image + (row.y * p.width + row.x) * p.channels;
      if (odd_) return PackOdd(from, to);
      for (size_t i = 0; i < count_; ++i) {
        const Piece piece = pieces_[i];
        if (HWY_LIKELY(piece.length == G)) {
          CopyExactly<G>(from + piece.from, to + piece.to);
        } else {
          CopyFloats(from + piece.from, piece.length, to + piece.to);
        }
      }
      return;
    }
    ForRuns(p, row, begin_, end_, [&](const float* from, size_t at, size_t n) TRIREME_INLINED {
      CopyGrouped<G>(from, n, at - begin_, stride_, to);
    });
  }

 private:
  struct Piece {
    ptrdiff_t from;
    uint32_t to, length;
  };
  static constexpr size_t kMost = 64;  // more pieces than that are tiny: rare
  static constexpr size_t kMostOdd = 256;

  // Lines of taps that are short and no multiple of a group (an image of three colours) are put
  // together first, then cut into groups.
  HWY_INLINE void PackOdd(const float* HWY_RESTRICT from, float* HWY_RESTRICT to) const {
    const size_t line = patches_.taps_x * size_t(patches_.channels);
    HWY_ALIGN float values[kMostOdd + kLanes];
    for (size_t y = begin_ / line; y * line < end_; ++y) {
      const float* pixels = from + ptrdiff_t(y) * patches_.width * patches_.channels;
      // Whole vectors are written; the next line overwrites what is too much.
      ForLanes(0, line, [&](size_t i, size_t n) TRIREME_INLINED {
        hn::StoreU(LoadN(pixels + i, n), Floats(), values + y * line + i);
      });
    }
    size_t at = begin_;
    for (; at + G <= end_; at += G, to += stride_) CopyExactly<G>(values + at, to);
    if (at < end_) CopyFloats(values + at, end_ - at, to);
  }

  // Adds a run of n floats that become values at, at + 1, ... in pieces that end with their group.
  void Cut(ptrdiff_t from, size_t at, size_t n) {
    while (n > 0) {
      const size_t part = std::min(n, G - at % G);
      if (count_ < kMost) {
        pieces_[count_] = {from, uint32_t(at / G * stride_ + at % G), uint32_t(part)};
      }
      ++count_;
      from += ptrdiff_t(part);
      at += part;
      n -= part;
    }
  }

  const Patches& patches_;
  const size_t begin_, end_, stride_;
  ptrdiff_t low_y_, high_y_, low_x_, high_x_;
  size_t count_ = 0;
  bool odd_ = false;
  Piece pieces_[kMost];
};

// Rows of a matrix, `stride` apart, as a tile by row.
HWY_INLINE void PackMatrix(const float* HWY_RESTRICT from, size_t stride, size_t rows, size_t depth,
                           float* HWY_RESTRICT tile) {
  for (size_t k = 0; k < depth; k += kGroup, tile += kTileRows * kGroup) {
    const size_t n = std::min(kGroup, depth - k);
    for (size_t r = 0; r < rows; ++r) {
      const float* row = from + r * stride + k;
      if (HWY_LIKELY(n == kGroup)) {
        CopyExactly<kGroup>(row, tile + r * kGroup);
      } else {
        CopyFloats(row, n, tile + r * kGroup);
      }
    }
  }
}

// Panels of B: kTileColumns side by side (fewer in the last one, in whole vectors), `depth` deep.
constexpr size_t PanelCount(size_t columns) { return hwy::DivCeil(columns, kTileColumns); }
constexpr size_t PanelFloats(size_t depth, size_t columns) {
  return depth * hwy::RoundUpTo(columns, kLanes);
}
// Floats across panel `index`; all panels before it are kTileColumns wide.
constexpr size_t PanelWidth(size_t index, size_t columns) {
  return std::min(kTileColumns, hwy::RoundUpTo(columns - index * kTileColumns, kLanes));
}

// Rows [begin, end) of panel j of b[.][columns]; row 0 of the panel stands at `panel`.
HWY_INLINE void PackPanel(const float* HWY_RESTRICT b, size_t columns, size_t begin, size_t end,
                          size_t j, float* HWY_RESTRICT panel) {
  const Floats d;
  const size_t at = j * kTileColumns, width = PanelWidth(j, columns), rest = columns - at;
  const float* from = b + begin * columns + at;
  float* to = panel + begin * width;
  if (HWY_LIKELY(rest >= kTileColumns)) {
    for (size_t k = begin; k < end; ++k, from += columns, to += kTileColumns) {
#pragma GCC unroll 8
      for (size_t v = 0; v < kTileColumns; v += kLanes) {
        hn::StoreU(hn::LoadU(d, from + v), d, to + v);
      }
    }
    return;
  }
  for (size_t k = begin; k < end; ++k, from += columns, to += width) {
    for (size_t v = 0; v < width; v += kLanes) {
      hn::StoreU(LoadN(from + v, std::min(kLanes, rest - v)), d, to + v);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Blocks of four floats, `step` apart.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const float* at, size_t step) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return hn::LoadU(d, at);
  } else {
    const hn::Half<D> half;
    const size_t middle = hn::MaxLanes(half) / 4 * step;
    return hn::Combine(d, LoadBlocks(half, at + middle, step), LoadBlocks(half, at, step));
  }
}

// Transposes each block of 4 x 4 lanes: calls store(i, values of column i of all blocks).
template <class D, class F>
HWY_INLINE void TransposeLanes(D d, hn::Vec<D> r0, hn::Vec<D> r1, hn::Vec<D> r2, hn::Vec<D> r3,
                               const F& store) {
  const hn::Repartition<double, D> dd;
  const auto low01 = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1));   // 00 10 01 11
  const auto low23 = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));   // 20 30 21 31
  const auto high01 = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1));  // 02 12 03 13
  const auto high23 = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
  store(size_t{0}, hn::BitCast(d, hn::InterleaveLower(dd, low01, low23)));
  store(size_t{1}, hn::BitCast(d, hn::InterleaveUpper(dd, low01, low23)));
  store(size_t{2}, hn::BitCast(d, hn::InterleaveLower(dd, high01, high23)));
  store(size_t{3}, hn::BitCast(d, hn::InterleaveUpper(dd, high01, high23)));
}

// A vector of rows x 4 columns becomes 4 vectors.
template <class D>
HWY_INLINE void TransposeFour(D d, const float* HWY_RESTRICT from, size_t from_stride,
                              float* HWY_RESTRICT to, size_t to_stride) {
  const auto load = [&](size_t row) TRIREME_INLINED {
    return LoadBlocks(d, from + row * from_stride, 4 * from_stride);
  };
  TransposeLanes(d, load(0), load(1), load(2), load(3),
                 [&](size_t i, hn::Vec<D> column)
                     TRIREME_INLINED { hn::StoreU(column, d, to + i * to_stride); });
}

// At least 4 x 4 values. The last block of rows or columns may take some a second time.
template <class D>
void TransposeBlocks(D d, const float* from, size_t from_stride, size_t rows, size_t columns,
                     float* to, size_t to_stride) {
  constexpr size_t kRows = hn::MaxLanes(d);
  if constexpr (kRows > 4) {
    if (rows < kRows) {
      return TransposeBlocks(hn::Half<D>(), from, from_stride, rows, columns, to, to_stride);
    }
  }
  for (size_t row = 0; row < rows; row += kRows) {
    const size_t i = std::min(row, rows - kRows);
    for (size_t column = 0; column < columns; column += 4) {
      const size_t j = std::min(column, columns - 4);
      TransposeFour(d, from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
  }
}
#endif

// to[j * to_stride + i] = from[i * from_stride + j] for rows x columns values of `from`.
inline void Transpose(const float* HWY_RESTRICT from, size_t from_stride, size_t rows,
                      size_t columns, float* HWY_RESTRICT to, size_t to_stride) {
  constexpr size_t kStretch = 64;  // columns whose rows of `to` stay in the first cache
  for (; columns > kStretch; columns -= kStretch, from += kStretch, to += kStretch * to_stride) {
    Transpose(from, from_stride, rows, kStretch, to, to_stride);
  }
#if HWY_TARGET != HWY_SCALAR
  if (rows >= 4 && columns >= 4) {
    return TransposeBlocks(Floats(), from, from_stride, rows, columns, to, to_stride);
  }
#endif
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
