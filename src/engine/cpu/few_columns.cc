// Weight gradients (wgrad) of few columns (the last layer's, of ten classes): vectors along a row
// of C would be empty for a good part. Here they lie along C's columns, which are rows of A as they
// stand in memory, and tiles are turned over when they are stored.
#include <algorithm>
#include <array>

#include "base/team.h"
#include "engine/cpu/call.h"
#include "engine/cpu/tiling/divide.h"
#include "engine/cpu/tiling/row_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/few_columns.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/pack-inl.h"
#include "engine/cpu/product-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

// Columns of C that a tile has at most, and vectors along them: as many as registers hold besides
// the vectors of A and a value of B.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr size_t kMostColumns = 14;
constexpr size_t Along(size_t columns) { return columns <= 6 ? 4 : columns <= 9 ? 3 : 2; }
#else
constexpr size_t kMostColumns = 6;
constexpr size_t Along(size_t columns) { return columns <= 2 ? 4 : columns <= 4 ? 3 : 2; }
#endif

constexpr size_t kFewColumns = 24;  // more were not tried

// Values of k that a tile sums before it adds to C: few pages of A, B in the first cache, and sums
// of sums lose less than one long sum.
constexpr size_t kStretch = 256;
// Rows of A that are fetched ahead: no processor guesses strides of a page.
constexpr size_t kAhead = 8;

// Writes n floats to C, or adds them.
template <size_t n>
HWY_INLINE void Put(const float* from, float* to, bool add) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (n == 4) {
    const hn::FixedTag<float, 4> d;
    const auto value = hn::LoadU(d, from);
    return hn::StoreU(add ? hn::Add(hn::LoadU(d, to), value) : value, d, to);
  }
#endif
  for (size_t i = 0; i < n; ++i) to[i] = add ? to[i] + from[i] : from[i];
}

// Turns four vectors over, so that four values that stand at the same place become neighbours:
// those of place i go to lanes[i % 4][i - i % 4].
HWY_INLINE void TurnFour(V r0, V r1, V r2, V r3, float (&lanes)[4][kLanes]) {
  const Floats d;
#if HWY_TARGET == HWY_SCALAR
  const V all[] = {r0, r1, r2, r3};
  for (size_t i = 0; i < 4; ++i) hn::Store(all[i], d, lanes[i]);
#else
  TransposeLanes(d, r0, r1, r2, r3,
                 [&](size_t i, V values) TRIREME_INLINED { hn::Store(values, d, lanes[i]); });
#endif
}

// Writes or adds sums of R columns of C, N vectors along them, to its first `rows` rows.
template <size_t R, size_t N>
HWY_INLINE void StoreTurned(const V (&sum)[R][N], size_t rows, float* c, size_t c_stride,
                            bool add) {
  constexpr size_t kFours = hwy::DivCeil(R, size_t{4});
  const auto column = [&](size_t r, size_t v)
                          TRIREME_INLINED { return r < R ? sum[r][v] : hn::Zero(Floats()); };
  HWY_ALIGN float lanes[kFours][4][kLanes];
#pragma GCC unroll 4
  for (size_t v = 0; v < N; ++v) {
#pragma GCC unroll 4
    for (size_t q = 0; q < kFours; ++q) {
      TurnFour(column(4 * q, v), column(4 * q + 1, v), column(4 * q + 2, v), column(4 * q + 3, v),
               lanes[q]);
    }
    const size_t end = std::min(kLanes, rows - v * kLanes);
    for (size_t i = 0; i < end; ++i, c += c_stride) {
#pragma GCC unroll 4
      for (size_t q = 0; q < R / 4; ++q) Put<4>(&lanes[q][i % 4][i - i % 4], c + 4 * q, add);
      Put<R % 4>(&lanes[kFours - 1][i % 4][i - i % 4], c + R / 4 * 4, add);
    }
  }
}

// R columns of C, N vectors along them; `rows` rows, kWhole: all that the vectors hold.
template <size_t R, size_t N, bool kWhole>
void FewTile(size_t k_count, const float* HWY_RESTRICT a, size_t a_stride,
             const float* HWY_RESTRICT b, size_t b_stride, size_t rows, float* c, bool add) {
  V sum[R][N];
  ForTile<R, N>([&](size_t r, size_t v) TRIREME_INLINED { sum[r][v] = hn::Zero(Floats()); });
  const auto add_rows = [&](size_t count, const auto& load) TRIREME_INLINED {
    for (; count > 0; --count, a += a_stride, b += b_stride) {
      V along[N];
#pragma GCC unroll 4
      for (size_t v = 0; v < N; ++v) {
        hwy::Prefetch(a + kAhead * a_stride + v * kLanes);
        along[v] = load(a + v * kLanes, v);
      }
#pragma GCC unroll 16
      for (size_t r = 0; r < R; ++r) MultiplyRow(hn::Set(Floats(), b[r]), along, sum[r]);
    }
  };
  // What stands beyond a row's end is never stored, but after the last rows there may be nothing.
  const size_t last = kWhole ? 0 : std::min(k_count, hwy::DivCeil(kLanes, a_stride));
  add_rows(k_count - last, [](const float* p, size_t) TRIREME_INLINED { return LoadAll(p); });
  if constexpr (!kWhole) {
    const size_t rest = rows - (N - 1) * kLanes;
    add_rows(last, [=](const float* p, size_t v)
                       TRIREME_INLINED { return v + 1 < N ? LoadAll(p) : LoadPart(p, rest); });
  }
  StoreTurned(sum, kWhole ? N * kLanes : rows, c, b_stride, add);
}

using FewFunction = void (*)(size_t k_count, const float* a, size_t a_stride, const float* b,
                             size_t b_stride, size_t rows, float* c, bool add);

template <size_t R, size_t... N>
constexpr std::array<FewFunction, Along(1) + 1> FewTilesOf(std::index_sequence<N...>) {
  return {&FewTile<R, Along(R), true>, &FewTile<R, N + 1, false>...};
}
// Of R columns: the whole tile, then parts of 1, 2, ... vectors.
template <size_t... R>
constexpr auto FewTiles(std::index_sequence<R...>) {
  return std::array{FewTilesOf<R + 1>(std::make_index_sequence<Along(R + 1)>())...};
}

// Rows [begin, end) of C = transposed rows [k_begin, k_end) of a * b.
void RunFew(const float* a, size_t depth, size_t k_begin, size_t k_end, const float* b,
            size_t columns, size_t begin, size_t end, float* c, bool add) {
  static constexpr auto kTiles = FewTiles(std::make_index_sequence<kMostColumns>());
  const size_t blocks = hwy::DivCeil(columns, kMostColumns);
  const size_t high = Along(hwy::DivCeil(columns, blocks)) * kLanes;  // of the widest
  for (size_t k = k_begin; k < k_end; k += kStretch) {
    const size_t k_count = std::min(kStretch, k_end - k);
    for (size_t i = begin; i < end; i += high) {
      const size_t rows = std::min(high, end - i);
      for (size_t block = 0; block < blocks; ++block) {
        const size_t j = columns * block / blocks, across = columns * (block + 1) / blocks - j;
        const bool whole = rows == Along(across) * kLanes;
        const auto tile = kTiles[across - 1][whole ? 0 : hwy::DivCeil(rows, kLanes)];
        tile(k_count, a + k * depth + i, depth, b + k * columns + j, columns, rows,
             c + i * columns + j, add || k > k_begin);
      }
    }
  }
}

}  // namespace

void MultiplyTransposedFew(const float* a, size_t rows, size_t depth, const float* b,
                           size_t columns, float* c, bool add, float* scratch, Team& team) {
  if (const RowParts parts(rows, depth * columns); parts.count() > 1) {
    ParallelFor(team, parts.count(), 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        RunFew(a, depth, parts.begin(i), parts.begin(i + 1), b, columns, 0, depth,
               scratch + i * parts.stride(), false);
      }
    });
    return parts.Add(scratch, c, add, team);
  }
  constexpr size_t kPiece = Along(1) * kLanes;
  const size_t grain = 1 + kParallelWork / 2 / (rows * columns * kPiece);
  ParallelFor(team, hwy::DivCeil(depth, kPiece), grain, [&](size_t begin, size_t end) {
    RunFew(a, depth, 0, rows, b, columns, begin * kPiece, std::min(depth, end * kPiece), c, add);
  });
}

size_t MultiplyTransposedFewScratch(size_t rows, size_t depth, size_t columns) {
  return columns <= kFewColumns ? RowParts(rows, depth * columns).floats() : 0;
}

// Costs in vectors: a multiply-add along C's rows takes half as long again, as each needs a value
// of A of its own; turning a vector over costs as much as eight (measured on AVX-512).
bool HasFewColumns(size_t rows, size_t depth, size_t columns) {
  return columns <= kFewColumns && 2 * columns * hwy::DivCeil(depth, kLanes) * (rows + 8) <=
                                       3 * depth * hwy::DivCeil(columns, kLanes) * (rows + 2);
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
