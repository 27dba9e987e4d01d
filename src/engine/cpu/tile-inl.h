// The register tile of all matrix products: R rows x N vectors of C stay in registers while k runs.
//   a   packed values of A, one stream of cache lines.
//       by row    groups of 16 values of k: a[k / 16][r][k % 16], for copies of long runs of k
//       by depth  a[k][r], for copies of long runs of r; the tile may be a part of kWeightGroup
//       rows
//   b   a packed panel of B: b[k][column], N vectors across
// Each element of C is one chain of multiply-adds over k, whatever the tile's size: how the work is
// cut never changes a bit.
#if defined(TRIREME_ENGINE_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_TILE_INL_H_
#undef TRIREME_ENGINE_CPU_TILE_INL_H_
#else
#define TRIREME_ENGINE_CPU_TILE_INL_H_
#endif

#include <array>
#include <initializer_list>
#include <utility>

#include "engine/cpu/simd-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Rows of a tile (of a small weight gradient's tile) and vectors across, by the number of
// registers.
#if HWY_TARGET == HWY_AVX3
constexpr size_t kTileRows = 14, kWeightRows = 8, kTileVectors = 2;
#elif HWY_TARGET == HWY_AVX2
constexpr size_t kTileRows = 6, kWeightRows = 6, kTileVectors = 2;
#elif HWY_TARGET == HWY_NEON
constexpr size_t kTileRows = 8, kWeightRows = 8, kTileVectors = 2;
#else
constexpr size_t kTileRows = 4, kWeightRows = 4, kTileVectors = 2;
#endif
// Arm multiplies by one lane of a register: four values of A are one load, not four broadcasts.
#undef TRIREME_BY_LANE
#define TRIREME_BY_LANE (HWY_TARGET == HWY_NEON)
constexpr size_t kTileColumns = kTileVectors * kLanes;

// Values of k that a tile sums before it adds to C (in a weight gradient). Where a panel of B
// need not stay in the first cache, longer sums touch C less often.
#if HWY_TARGET == HWY_AVX3
constexpr size_t kDepth = 256, kWeightDepth = 192;
#else
constexpr size_t kDepth = 256, kWeightDepth = 256;
#endif
constexpr size_t kGroup = 16;  // of k, by row: a cache line of each row

// Rows that stand side by side where A is packed by depth: a cache line of each k is copied at
// once. One tile of kTileRows, or some of kWeightRows.
#if HWY_TARGET == HWY_AVX3
constexpr size_t kWeightGroup = 2 * kWeightRows;
#else
constexpr size_t kWeightGroup = kWeightRows;
#endif
static_assert(kTileRows <= kWeightGroup);

enum class Order { kByRow, kByDepth };

// Memory that later tiles will read: rows of `floats` floats, `stride` apart.
struct Ahead {
  const float* first = nullptr;
  size_t stride = 0, floats = 0, rows = 0;

  size_t lines() const { return rows * hwy::DivCeil(floats, kGroup); }
};

// Part `i` of `of` about equal ones, in whole rows.
inline Ahead Part(Ahead all, size_t i, size_t of) {
  const size_t begin = all.rows * i / of, end = all.rows * (i + 1) / of;
  all.first += begin * all.stride;
  all.rows = end - begin;
  return all;
}

// Fetches such memory into the second cache bit by bit while tiles are computed; all at once it
// would hold up the tiles' own reads.
class Fetcher {
 public:
  // Some stretches, one after another, during `groups` calls of Next.
  Fetcher(std::initializer_list<Ahead> stretches, size_t groups) {
    size_t lines = 0;
    for (const Ahead& stretch : stretches) {
      if (!stretch.lines()) continue;
      stretches_[count_++] = stretch;
      lines += stretch.lines();
    }
    each_ = hwy::DivCeil(lines, groups);
  }

  // To be called once for each kGroup values of k.
  HWY_INLINE void Next() {
    if (now_ < count_) Fetch();
  }

 private:
  HWY_INLINE void Fetch() {
    Ahead& stretch = stretches_[now_];
    for (size_t i = 0; i < each_; ++i) {
      __builtin_prefetch(stretch.first + at_, 0, 2);
      at_ += kGroup;
      if (at_ < stretch.floats) continue;
      at_ = 0;
      stretch.first += stretch.stride;
      if (--stretch.rows > 0) continue;
      ++now_;
      return;
    }
  }

  Ahead stretches_[3];
  size_t count_ = 0, now_ = 0, each_ = 0, at_ = 0;
};

// Where a tile's result goes.
struct Into {
  float* const* rows;  // R pointers to C's first column
  size_t first;        // column of the tile
  size_t columns;      // of the tile, at most N * kLanes
  bool add;            // to what is there
  const float* bias;   // of C's first column, or null; not with add
  bool relu;
  bool stream =
      false;  // past the caches; rows are aligned, the tile's vectors whole, nothing added
  // Where it is not null, what C becomes only where the value there is positive, and 0 elsewhere;
  // of the place of C that `origin` is.
  const float* positive = nullptr;
  const float* origin = nullptr;
  Fetcher* fetcher = nullptr;
};

// Zero where the value that belongs to C's place `c` is not positive.
template <class Load>
HWY_INLINE V WherePositive(V value, const Into& into, const float* c, const Load& load) {
  const V judge = load(into.positive + (c - into.origin));
  return hn::IfThenElseZero(hn::Gt(judge, hn::Zero(Floats())), value);
}

// A tile whose last vector is not whole, through memory: for targets without masked stores.
template <size_t R, size_t N>
HWY_NOINLINE void StorePartTile(const float* sum, const Into& into) {
  for (size_t r = 0; r < R; ++r) {
    ForLanes(0, into.columns, [&](size_t j, size_t n) TRIREME_INLINED {
      float* c = into.rows[r] + into.first + j;
      V value = LoadN(sum + r * N * kLanes + j, n);
      if (into.add) {
        value = hn::Add(LoadN(c, n), value);
      } else if (into.bias) {
        value = hn::Add(value, LoadN(into.bias + into.first + j, n));
      }
      if (into.relu) value = PositivePart(value);
      if (into.positive) {
        value = WherePositive(value, into, c,
                              [&](const float* p) TRIREME_INLINED { return LoadN(p, n); });
      }
      StoreN(value, c, n);
    });
  }
}

// Calls each(r, v) for all vectors of a tile.
template <size_t R, size_t N, class F>
HWY_INLINE void ForTile(const F& each) {
#pragma GCC unroll 16
  for (size_t r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (size_t v = 0; v < N; ++v) each(r, v);
  }
}

// Adds what belongs to a tile's sums and stores them. kWhole: the last vector too has all columns.
template <bool kWhole, size_t R, size_t N>
HWY_INLINE void StoreSums(V (&sum)[R][N], const Into& into) {
  const Floats d;
  const FirstLanes last(into.columns - (N - 1) * kLanes);
  const auto load = [&](const float* p, size_t v) TRIREME_INLINED {
    return kWhole || v + 1 < N ? LoadAll(p + v * kLanes) : last.Load(p + v * kLanes);
  };
  float* rows[R];  // read before anything is stored
#pragma GCC unroll 16
  for (size_t r = 0; r < R; ++r) rows[r] = into.rows[r] + into.first;
  if (into.add) {
    ForTile<R, N>([&](size_t r, size_t v)
                      TRIREME_INLINED { sum[r][v] = hn::Add(load(rows[r], v), sum[r][v]); });
  } else if (into.bias) {
    V bias[N];
#pragma GCC unroll 8
    for (size_t v = 0; v < N; ++v) bias[v] = load(into.bias + into.first, v);
    ForTile<R, N>([&](size_t r, size_t v)
                      TRIREME_INLINED { sum[r][v] = hn::Add(sum[r][v], bias[v]); });
  }
  if (into.relu) {
    ForTile<R, N>([&](size_t r, size_t v) TRIREME_INLINED { sum[r][v] = PositivePart(sum[r][v]); });
  }
  if (into.positive) {
    ForTile<R, N>([&](size_t r, size_t v) TRIREME_INLINED {
      sum[r][v] = WherePositive(sum[r][v], into, rows[r],
                                [&](const float* p) TRIREME_INLINED { return load(p, v); });
    });
  }
  if (kWhole && into.stream) {
    ForTile<R, N>([&](size_t r, size_t v)
                      TRIREME_INLINED { hn::Stream(sum[r][v], d, rows[r] + v * kLanes); });
    return;
  }
  ForTile<R, N>([&](size_t r, size_t v) TRIREME_INLINED {
    if (kWhole || v + 1 < N) {
      StoreAll(sum[r][v], rows[r] + v * kLanes);
    } else {
      last.Store(sum[r][v], rows[r] + v * kLanes);
    }
  });
}

// A tile's last vector may have less than all columns.
template <size_t R, size_t N>
HWY_INLINE void StoreTile(V (&sum)[R][N], const Into& into) {
  if (into.columns == N * kLanes) return StoreSums<true>(sum, into);
  if constexpr (kSafeMasks) {
    StoreSums<false>(sum, into);
  } else {
    HWY_ALIGN float lanes[R * N * kLanes];
    ForTile<R, N>([&](size_t r, size_t v) TRIREME_INLINED {
      hn::Store(sum[r][v], Floats(), lanes + (r * N + v) * kLanes);
    });
    StorePartTile<R, N>(lanes, into);
  }
}

template <size_t N>
HWY_INLINE void LoadAcross(const float* HWY_RESTRICT b, V (&across)[N]) {
#pragma GCC unroll 8
  for (size_t v = 0; v < N; ++v) across[v] = hn::LoadU(Floats(), b + v * kLanes);
}
// Asks for what a packed panel holds some values of k further on: it comes from the second cache.
template <size_t N>
HWY_INLINE void FetchAcross([[maybe_unused]] const float* b) {
#if HWY_TARGET == HWY_AVX3
#pragma GCC unroll 8
  for (size_t v = 0; v < N; ++v) hwy::Prefetch(b + (8 * N + v) * kLanes);
#endif
}
template <size_t N>
HWY_INLINE void MultiplyRow(V down, const V (&across)[N], V (&sum)[N]) {
#pragma GCC unroll 8
  for (size_t v = 0; v < N; ++v) sum[v] = hn::MulAdd(down, across[v], sum[v]);
}

// sum[.][.] += a[.][k] * b[k][.] for one k; A's values stand `stride` apart.
template <size_t stride, size_t R, size_t N>
HWY_INLINE void MultiplyOne(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                            V (&sum)[R][N]) {
  V across[N];
  LoadAcross(b, across);
#pragma GCC unroll 16
  for (size_t r = 0; r < R; ++r) MultiplyRow(hn::Set(Floats(), a[r * stride]), across, sum[r]);
}

#if TRIREME_BY_LANE
// The same where A's values of one k are neighbours.
template <size_t R, size_t N, size_t... r>
HWY_INLINE void MultiplyNeighbours(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                                   V (&sum)[R][N], std::index_sequence<r...>) {
  V across[N], down[hwy::DivCeil(R, kLanes)];
  LoadAcross(b, across);
  LoadAcross(a, down);
  (MultiplyRow(hn::Broadcast<r % kLanes>(down[r / kLanes]), across, sum[r]), ...);
}

// A value of k for each lane; a row's values of k are neighbours, rows stand kGroup apart.
template <size_t R, size_t N, size_t... lane>
HWY_INLINE void MultiplyLanes(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                              V (&sum)[R][N], std::index_sequence<lane...>) {
  V down[R];
#pragma GCC unroll 16
  for (size_t r = 0; r < R; ++r) down[r] = hn::LoadU(Floats(), a + r * kGroup);
  (
      [&]() TRIREME_INLINED {
        V across[N];
        LoadAcross(b + lane * N * kLanes, across);
#pragma GCC unroll 16
        for (size_t r = 0; r < R; ++r) {
          MultiplyRow(hn::Broadcast<lane>(down[r]), across, sum[r]);
        }
      }(),
      ...);
}

template <size_t R, size_t N>
HWY_INLINE void MultiplyDepth(const float* a, const float* b, V (&sum)[R][N]) {
  MultiplyNeighbours(a, b, sum, std::make_index_sequence<R>());
}
template <size_t R, size_t N>
HWY_INLINE void MultiplyGroup(const float* a, const float* b, V (&sum)[R][N]) {
  for (size_t i = 0; i < kGroup; i += kLanes) {
    MultiplyLanes(a + i, b + i * N * kLanes, sum, std::make_index_sequence<kLanes>());
  }
}
#else
template <size_t R, size_t N>
HWY_INLINE void MultiplyDepth(const float* a, const float* b, V (&sum)[R][N]) {
  MultiplyOne<1>(a, b, sum);
}
template <size_t R, size_t N>
HWY_INLINE void MultiplyGroup(const float* a, const float* b, V (&sum)[R][N]) {
#pragma GCC unroll 4
  for (size_t i = 0; i < kGroup; ++i) {
    FetchAcross<N>(b + i * N * kLanes);
    MultiplyOne<kGroup>(a + i, b + i * N * kLanes, sum);
  }
}
#endif

// C = what sum_up(sum) adds to sums of zero.
template <size_t R, size_t N, class F>
HWY_INLINE void ComputeTile(const Into& into, const F& sum_up) {
  // C, and what decides about it, is needed at the end of this tile.
  for (size_t r = 0; r < R && !into.stream; ++r) {
    for (size_t v = 0; v < N; ++v) hwy::Prefetch(into.rows[r] + into.first + v * kLanes);
  }
  for (size_t r = 0; r < R && into.positive; ++r) {
    const float* judges = into.positive + (into.rows[r] - into.origin) + into.first;
    for (size_t v = 0; v < N; ++v) hwy::Prefetch(judges + v * kLanes);
  }
  V sum[R][N];
  ForTile<R, N>([&](size_t r, size_t v) TRIREME_INLINED { sum[r][v] = hn::Zero(Floats()); });
  sum_up(sum);
  StoreTile(sum, into);
}

template <Order order, size_t R, size_t N>
void Tile(size_t depth, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
          const Into& into) {
  ComputeTile<R, N>(into, [&](V(&sum)[R][N]) TRIREME_INLINED {
    if constexpr (order == Order::kByDepth) {
      size_t k = 0;
      for (; k + kGroup <= depth;
           k += kGroup, a += kGroup * kWeightGroup, b += kGroup * N * kLanes) {
        if (into.fetcher) into.fetcher->Next();
#pragma GCC unroll 4
        for (size_t i = 0; i < kGroup; ++i) {
          if constexpr (R > kWeightRows) FetchAcross<N>(b + i * N * kLanes);
          MultiplyDepth(a + i * kWeightGroup, b + i * N * kLanes, sum);
        }
      }
      for (size_t i = 0; k < depth; ++i, ++k) {
        MultiplyDepth(a + i * kWeightGroup, b + i * N * kLanes, sum);
      }
    } else {
      size_t k = 0;
      for (; k + kGroup <= depth; k += kGroup, a += kTileRows * kGroup, b += kGroup * N * kLanes) {
        if (into.fetcher) into.fetcher->Next();
        MultiplyGroup(a, b, sum);
      }
      for (size_t i = 0; k < depth; ++i, ++k) MultiplyOne<kGroup>(a + i, b + i * N * kLanes, sum);
    }
  });
}

using TileFunction = void (*)(size_t depth, const float* a, const float* b, const Into& into);

template <Order order, size_t N, size_t... R>
constexpr std::array<TileFunction, sizeof...(R)> TilesOf(std::index_sequence<R...>) {
  return {&Tile<order, R + 1, N>...};
}

// The tile of `rows` rows (1 .. kTileRows) and `vectors` vectors.
template <Order order>
TileFunction ChooseTile(size_t rows, size_t vectors) {
  static constexpr auto kOne = TilesOf<order, 1>(std::make_index_sequence<kTileRows>());
  static constexpr auto kTwo = TilesOf<order, 2>(std::make_index_sequence<kTileRows>());
  static_assert(kTileVectors == 2);
  return vectors == 1 ? kOne[rows - 1] : kTwo[rows - 1];
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
