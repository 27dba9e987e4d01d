// The register tile of all matrix products: R rows x N vectors of C stay in registers while k runs.
//   a   packed values of A: by row, a[r * kRowStride + k], or by k, a[k * kWeightRows + r]
//   b   a packed panel of B: b[k * N * kLanes + column]
// Each element of C is one chain of multiply-adds over k, whatever the tile's size: how the work is
// cut never changes a bit.
#if defined(TRIREME_ENGINE_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_TILE_INL_H_
#undef TRIREME_ENGINE_CPU_TILE_INL_H_
#else
#define TRIREME_ENGINE_CPU_TILE_INL_H_
#endif

#include <array>
#include <utility>

#include "engine/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Rows of a tile (of a weight gradient's tile) and vectors across, by the number of registers.
#if HWY_TARGET == HWY_AVX3
constexpr size_t kTileRows = 12, kWeightRows = 8, kTileVectors = 2;
#elif HWY_TARGET == HWY_AVX2
constexpr size_t kTileRows = 6, kWeightRows = 6, kTileVectors = 2;
#elif HWY_TARGET == HWY_NEON
constexpr size_t kTileRows = 8, kWeightRows = 8, kTileVectors = 2;
#else
constexpr size_t kTileRows = 4, kWeightRows = 4, kTileVectors = 2;
#endif
constexpr size_t kTileColumns = kTileVectors * kLanes;

// Values of k that a tile sums before it adds to C: a panel of B stays in the first cache.
constexpr size_t kDepth = 256;
// Rows of packed A lie this far apart: not a power of two, or they would share cache sets.
constexpr size_t kRowStride = kDepth + 16;

enum class Order { kByRow, kByDepth };

// Where a tile's result goes.
struct Into {
  float* const* rows;  // R pointers to C's first column
  size_t first;        // column of the tile
  size_t columns;      // of the tile, at most N * kLanes
  bool add;            // to what is there
  const float* bias;   // of C's first column, or null; not with add
  bool relu;
};

template <size_t R, size_t N>
HWY_INLINE void StoreTile(const V (&sum)[R][N], const Into& into) {
  const Floats d;
  const size_t rest = into.columns - (N - 1) * kLanes;  // of the last vector
#pragma GCC unroll 16
  for (size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < N; ++v) {
      float* c = into.rows[r] + into.first + v * kLanes;
      const bool whole = v + 1 < N || rest == kLanes;
      V value = sum[r][v];
      if (into.add) {
        value = hn::Add(whole ? hn::LoadU(d, c) : LoadPart(c, rest), value);
      } else if (into.bias) {
        const float* bias = into.bias + into.first + v * kLanes;
        value = hn::Add(value, whole ? hn::LoadU(d, bias) : LoadPart(bias, rest));
      }
      if (into.relu) value = PositivePart(value);
      if (whole) {
        hn::StoreU(value, d, c);
      } else {
        StorePart(value, c, rest);
      }
    }
  }
}

// sum[.][.] += a[.][k] * b[k][.] for one k, A's values broadcast from memory.
template <Order order, size_t R, size_t N>
HWY_INLINE void MultiplyOne(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                            V (&sum)[R][N]) {
  const Floats d;
  V across[N];
#pragma GCC unroll 4
  for (size_t v = 0; v < N; ++v) across[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 16
  for (size_t r = 0; r < R; ++r) {
    const V down = hn::Set(d, a[order == Order::kByRow ? r * kRowStride : r]);
#pragma GCC unroll 4
    for (size_t v = 0; v < N; ++v) sum[r][v] = hn::MulAdd(down, across[v], sum[r][v]);
  }
}

template <Order order, size_t R, size_t N>
void Tile(size_t depth, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
          const Into& into) {
  V sum[R][N];
#pragma GCC unroll 16
  for (size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < N; ++v) sum[r][v] = hn::Zero(Floats());
  }
  constexpr size_t kNext = order == Order::kByRow ? 1 : kWeightRows;
#pragma GCC unroll 4
  for (size_t k = 0; k < depth; ++k) {
    MultiplyOne<order>(a + k * kNext, b + k * N * kLanes, sum);
  }
  StoreTile(sum, into);
}

using TileFunction = void (*)(size_t depth, const float* a, const float* b, const Into& into);

template <Order order, size_t N, size_t... R>
constexpr std::array<TileFunction, sizeof...(R)> TilesOf(std::index_sequence<R...>) {
  return {&Tile<order, R + 1, N>...};
}

// The tile of `rows` rows (1 .. kTileRows or kWeightRows) and `vectors` vectors.
template <Order order>
TileFunction ChooseTile(size_t rows, size_t vectors) {
  constexpr size_t kMost = order == Order::kByRow ? kTileRows : kWeightRows;
  static constexpr auto kOne = TilesOf<order, 1>(std::make_index_sequence<kMost>());
  static constexpr auto kTwo = TilesOf<order, 2>(std::make_index_sequence<kMost>());
  static_assert(kTileVectors == 2);
  return vectors == 1 ? kOne[rows - 1] : kTwo[rows - 1];
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
