// Products whose matrices are small or thin: packing would cost more than it saves.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"
#include "engine/cpu/tiling/divide.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/direct.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/product-inl.h"
#include "engine/cpu/tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

// Vectors across a tile of so many rows; few rows leave registers for more columns.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr size_t kMostRows = 8;
constexpr size_t Across(size_t rows) { return rows == 8 ? 2 : rows == 1 ? 8 : 4; }
#else
constexpr size_t kMostRows = 4;
constexpr size_t Across(size_t rows) { return rows == 4 ? 2 : rows == 2 ? 4 : 8; }
#endif

// Values of k at a time: all strips of a matrix read so many of its rows before they go on, so its
// pages stay known to the processor.
constexpr size_t kStretch = 512;

// Rows of B that are fetched ahead: no processor guesses strides of a page.
constexpr size_t kAhead = 8;

// R rows of A from `at` on x N vectors; the last vector may be a part of one unless kWhole.
template <size_t R, size_t N, bool kWhole>
void DirectTile(const Strided& a, const float* HWY_RESTRICT at, size_t depth,
                const float* HWY_RESTRICT b, size_t b_stride, const Into& into) {
  V sum[R][N];
  ForTile<R, N>([&](size_t r, size_t v) TRIREME_INLINED { sum[r][v] = hn::Zero(Floats()); });
  const FirstLanes last(into.columns - (N - 1) * kLanes);
  const size_t row_stride = a.row_stride, depth_stride = a.depth_stride;
  for (size_t k = 0; k < depth; ++k, at += depth_stride, b += b_stride) {
    bool ahead = true;
    if constexpr (R == 1) {
      // One sample: rows of B that meet a zero of it are not read. Four of five pixels of a digit
      // are zero, and the row may be in another core's cache (hogwild).
      ahead = k + kAhead < depth && at[kAhead * depth_stride] != 0;
    }
    if (ahead) {
#pragma GCC unroll 8
      for (size_t v = 0; v < N; ++v) hwy::Prefetch(b + kAhead * b_stride + v * kLanes);
    }
    if (R == 1 && at[0] == 0) continue;
    V across[N];
#pragma GCC unroll 8
    for (size_t v = 0; v < N; ++v) {
      across[v] = kWhole || v + 1 < N ? LoadAll(b + v * kLanes) : last.Load(b + v * kLanes);
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < R; ++r) {
      MultiplyRow(hn::Set(Floats(), at[r * row_stride]), across, sum[r]);
    }
  }
  StoreTile(sum, into);
}

using DirectFunction = void (*)(const Strided&, const float* at, size_t depth, const float* b,
                                size_t b_stride, const Into&);

template <size_t R, size_t... N>
constexpr std::array<DirectFunction, sizeof...(N)> DirectTiles(std::index_sequence<N...>) {
  return {&DirectTile<R, N + 1, false>...};
}

// All columns [begin, end) of R rows: whole strips, then a part of one.
template <size_t R>
void RunRows(const Strided& a, const float* at, size_t depth, const float* b, size_t columns,
             size_t begin, size_t end, Into into) {
  constexpr size_t kStrip = Across(R) * kLanes;
  static constexpr auto kParts = DirectTiles<R>(std::make_index_sequence<Across(R)>());
  into.first = begin;
  into.columns = kStrip;
  for (; into.first + kStrip <= end; into.first += kStrip) {
    DirectTile<R, Across(R), true>(a, at, depth, b + into.first, columns, into);
  }
  if (into.first == end) return;
  into.columns = end - into.first;
  kParts[hwy::DivCeil(into.columns, kLanes) - 1](a, at, depth, b + into.first, columns, into);
}

// Columns [begin, end) of rows of c (+)= a column times a row: the weight gradient of one sample.
// Memory is written in one stream and, where rows are long, in whole cache lines.
void Outer(const Strided& a, size_t row, size_t row_end, const float* HWY_RESTRICT b,
           size_t columns, size_t begin, size_t end, bool add, float* HWY_RESTRICT c) {
  const bool aligns = end - begin >= 4 * kLanes;
  for (; row < row_end; ++row) {
    float* to = c + row * columns;
    const V factor = hn::Set(Floats(), a.data[row * a.row_stride]);
    const auto put = [&](size_t j, size_t n) TRIREME_INLINED {
      const V product = hn::Mul(factor, LoadN(b + j, n));
      StoreN(add ? hn::Add(LoadN(to + j, n), product) : product, to + j, n);
    };
    const size_t off = reinterpret_cast<uintptr_t>(to + begin) / sizeof(float) % kLanes;
    const size_t head = aligns && off > 0 ? kLanes - off : 0;
    if (head > 0) put(begin, head);
    ForLanes(begin + head, end, put);
  }
}

struct DirectTask {
  const Strided& a;
  size_t depth;
  const float* b;
  size_t columns;
  float* c;
  const Finish& finish;

  template <size_t R>
  size_t RunFrom(size_t row, size_t row_end, size_t begin, size_t end) const {
    for (; row + R <= row_end; row += R) {
      float* rows[R];
      rows[0] = c + row * columns;
#pragma GCC unroll 8
      for (size_t r = 1; r < R; ++r) rows[r] = rows[r - 1] + columns;
      for (size_t k = 0; k < depth; k += kStretch) {
        RunRows<R>(a, a.data + row * a.row_stride + k * a.depth_stride,
                   std::min(kStretch, depth - k), b + k * columns, columns, begin, end,
                   {.rows = rows,
                    .add = finish.add || k > 0,
                    .bias = finish.bias,
                    .relu = finish.relu && k + kStretch >= depth});
      }
    }
    return row;
  }

  void Run(size_t row, size_t row_end, size_t begin, size_t end) const {
    if (depth == 1 && !finish.bias && !finish.relu) {
      return Outer(a, row, row_end, b, columns, begin, end, finish.add, c);
    }
    if constexpr (kMostRows == 8) row = RunFrom<8>(row, row_end, begin, end);
    row = RunFrom<4>(row, row_end, begin, end);
    row = RunFrom<2>(row, row_end, begin, end);
    RunFrom<1>(row, row_end, begin, end);
  }
};

// Dot products of R rows of a with four (or one) of b: c[r][j].
template <size_t R, size_t N>
HWY_INLINE void DotTile(const float* a, const float* b, size_t depth, float* c, size_t c_stride) {
  V sum[R][N];
  ForTile<R, N>([&](size_t r, size_t j) TRIREME_INLINED { sum[r][j] = hn::Zero(Floats()); });
  ForLanes(0, depth, [&](size_t k, size_t n) TRIREME_INLINED {
    V down[R];
#pragma GCC unroll 4
    for (size_t r = 0; r < R; ++r) down[r] = LoadN(a + r * depth + k, n);
#pragma GCC unroll 4
    for (size_t j = 0; j < N; ++j) {
      const V across = LoadN(b + j * depth + k, n);
#pragma GCC unroll 4
      for (size_t r = 0; r < R; ++r) sum[r][j] = hn::MulAdd(down[r], across, sum[r][j]);
    }
  });
  ForTile<R, N>([&](size_t r, size_t j) TRIREME_INLINED { c[r * c_stride + j] = Sum(sum[r][j]); });
}

template <size_t R>
size_t DotRows(const float* a, size_t row, size_t rows, size_t depth, const float* b, size_t begin,
               size_t end, size_t columns, float* c) {
  for (; row + R <= rows; row += R) {
    size_t j = begin;
    for (; j + 4 <= end; j += 4) {
      DotTile<R, 4>(a + row * depth, b + j * depth, depth, c + row * columns + j, columns);
    }
    for (; j < end; ++j) {
      DotTile<R, 1>(a + row * depth, b + j * depth, depth, c + row * columns + j, columns);
    }
  }
  return row;
}

}  // namespace

void MultiplyDirectly(const Strided& a, size_t rows, size_t depth, const float* b, size_t columns,
                      float* c, const Finish& finish, Team& team) {
  const DirectTask task{a, depth, b, columns, c, finish};
  if (team.size() == 1 || rows * columns * depth < kParallelWork) {
    return task.Run(0, rows, 0, columns);
  }
  const size_t row_blocks = hwy::DivCeil(rows, kMostRows), strips = hwy::DivCeil(columns, kLanes);
  if (row_blocks >= strips) {
    ParallelFor(team, row_blocks, 1, [&](size_t begin, size_t end) {
      task.Run(begin * kMostRows, std::min(rows, end * kMostRows), 0, columns);
    });
  } else {
    ParallelFor(team, strips, 1, [&](size_t begin, size_t end) {
      task.Run(0, rows, begin * kLanes, std::min(columns, end * kLanes));
    });
  }
}

void MultiplyTransposedDirectly(const float* a, size_t rows, size_t depth, const float* b,
                                size_t columns, float* c, Team& team) {
  const size_t grain = 4 + kParallelWork / 2 / (rows * depth);
  ParallelFor(team, columns, grain, [&](size_t begin, size_t end) {
    size_t row = 0;
    if constexpr (kMostRows == 8) row = DotRows<4>(a, row, rows, depth, b, begin, end, columns, c);
    row = DotRows<2>(a, row, rows, depth, b, begin, end, columns, c);
    DotRows<1>(a, row, rows, depth, b, begin, end, columns, c);
  });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
