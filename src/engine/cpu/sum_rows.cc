// Sums over rows in two stages: chunks whose size depends on the matrix alone, then their sums in
// order. The number of threads changes nothing.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"
#include "engine/cpu/tiling/divide.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/sum_rows.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/product-inl.h"
#include "engine/cpu/strips-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

constexpr size_t kChunkRows = 128;

// sums[.] (+)= sum over rows
template <class T>
void SumChunk(const T* x, size_t rows, size_t columns, float* sums, bool add) {
  ForStrips(columns, [&](auto strip) TRIREME_INLINED {
    using S = decltype(strip);
    Sums<S> sum;
    ForRows(strip, rows, [&](size_t i, size_t u, size_t v) TRIREME_INLINED {
      sum.parts[u][v] = hn::Add(sum.parts[u][v], strip.Load(x + i * columns + strip.j, v));
    });
    for (size_t v = 0; v < S::kVectors; ++v) {
      const V total = sum.Total(v);
      float* to = sums + strip.j;
      strip.Store(add ? hn::Add(strip.Load(to, v), total) : total, to, v);
    }
  });
}

template <class T>
void SumInChunks(const T* x, size_t rows, size_t columns, float* sums, bool add, float* scratch,
                 Team& team) {
  if (rows <= kChunkRows) return SumChunk(x, rows, columns, sums, add);
  const size_t chunks = hwy::DivCeil(rows, kChunkRows);
  const size_t grain = 1 + kParallelWork / 4 / (kChunkRows * columns);
  ParallelFor(team, chunks, grain, [&](size_t begin, size_t end) {
    for (size_t c = begin; c < end; ++c) {
      const size_t first = c * kChunkRows;
      SumChunk(x + first * columns, std::min(kChunkRows, rows - first), columns,
               scratch + c * columns, false);
    }
  });
  SumChunk(scratch, chunks, columns, sums, add);
}

}  // namespace

size_t SumRowsScratch(size_t rows, size_t columns) {
  return rows <= kChunkRows ? 0 : hwy::DivCeil(rows, kChunkRows) * columns;
}

void SumRows(const float* x, size_t rows, size_t columns, float* sums, bool add, float* scratch,
             Team& team) {
  SumInChunks(x, rows, columns, sums, add, scratch, team);
}
void SumRows(const BFloat* x, size_t rows, size_t columns, float* sums, bool add, float* scratch,
             Team& team) {
  SumInChunks(x, rows, columns, sums, add, scratch, team);
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
