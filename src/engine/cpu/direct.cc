// Products whose matrices are small or thin: packing would cost more than it saves.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"

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
constexpr size_t Across(size_t rows) { return rows == 8 ? 2 : rows == 4 ? 4 : 8; }
#else
constexpr size_t kMostRows = 4;
constexpr size_t Across(size_t rows) { return rows == 4 ? 2 : rows == 2 ? 4 : 8; }
#endif

// R rows x N vectors; the last vector has `rest` columns unless kWhole.
template <size_t R, size_t N, bool kWhole>
void DirectTile(const Strided& a, size_t depth, const float* HWY_RESTRICT b, size_t b_stride,
                size_t rest, const Into& into) {
  const Floats d;
  V sum[R][N];
#pragma GCC unroll 16
  for (size_t r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (size_t v = 0; v < N; ++v) sum[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT at = a.data;
  for (size_t k = 0; k < depth; ++k, at += a.depth_stride, b += b_stride) {
    V across[N];
#pragma GCC unroll 8
    for (size_t v = 0; v < N; ++v) {
      across[v] =
          kWhole || v + 1 < N ? hn::LoadU(d, b + v * kLanes) : LoadPart(b + v * kLanes, rest);
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < R; ++r) {
      const V down = hn::Set(d, at[r * a.row_stride]);
#pragma GCC unroll 8
      for (size_t v = 0; v < N; ++v) sum[r][v] = hn::MulAdd(down, across[v], sum[r][v]);
    }
  }
  StoreTile(sum, into);
}

using DirectFunction = void (*)(const Strided&, size_t depth, const float* b, size_t b_stride,
                                size_t rest, const Into&);

template <size_t R, bool kWhole, size_t... N>
constexpr std::array<DirectFunction, sizeof...(N)> DirectTiles(std::index_sequence<N...>) {
  return {&DirectTile<R, N + 1, kWhole>...};
}

// All columns [begin, end) of R rows.
template <size_t R>
void RunRows(const Strided& a, size_t depth, const float* b, size_t columns, size_t begin,
             size_t end, Into into) {
  constexpr size_t kStrip = Across(R) * kLanes;
  static constexpr auto kWhole = DirectTiles<R, true>(std::make_index_sequence<Across(R)>());
  static constexpr auto kPart = DirectTiles<R, false>(std::make_index_sequence<Across(R)>());
  for (size_t at = begin; at < end; at += kStrip) {
    into.first = at;
    into.columns = std::min(kStrip, end - at);
    const size_t vectors = hwy::DivCeil(into.columns, kLanes);
    const size_t rest = into.columns - (vectors - 1) * kLanes;
    (rest == kLanes ? kWhole : kPart)[vectors - 1](a, depth, b + at, columns, rest, into);
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
      for (size_t r = 0; r < R; ++r) rows[r] = c + (row + r) * columns;
      const Strided from = {a.data + row * a.row_stride, a.row_stride, a.depth_stride};
      RunRows<R>(from, depth, b, columns, begin, end,
                 {.rows = rows, .add = finish.add, .bias = finish.bias, .relu = finish.relu});
    }
    return row;
  }

  void Run(size_t row, size_t row_end, size_t begin, size_t end) const {
    if constexpr (kMostRows == 8) row = RunFrom<8>(row, row_end, begin, end);
    row = RunFrom<4>(row, row_end, begin, end);
    row = RunFrom<2>(row, row_end, begin, end);
    RunFrom<1>(row, row_end, begin, end);
  }
};

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

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
