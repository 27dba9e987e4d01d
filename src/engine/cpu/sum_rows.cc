// Sums over rows in two stages: chunks whose size depends on the matrix alone, then their sums in
// order. The number of threads changes nothing.
#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/sum_rows.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/product-inl.h"
#include "engine/cpu/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

constexpr size_t kChunkRows = 128;

// sums[.] (+)= sum over rows, four vectors of columns at a time.
void SumChunk(const float* x, size_t rows, size_t columns, float* sums, bool add) {
  const Floats d;
  size_t j = 0;
  for (; j + 4 * kLanes <= columns; j += 4 * kLanes) {
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (size_t i = 0; i < rows; ++i) {
      const float* at = x + i * columns + j;
      s0 = hn::Add(s0, hn::LoadU(d, at));
      s1 = hn::Add(s1, hn::LoadU(d, at + kLanes));
      s2 = hn::Add(s2, hn::LoadU(d, at + 2 * kLanes));
      s3 = hn::Add(s3, hn::LoadU(d, at + 3 * kLanes));
    }
    float* to = sums + j;
    if (add) {
      s0 = hn::Add(hn::LoadU(d, to), s0);
      s1 = hn::Add(hn::LoadU(d, to + kLanes), s1);
      s2 = hn::Add(hn::LoadU(d, to + 2 * kLanes), s2);
      s3 = hn::Add(hn::LoadU(d, to + 3 * kLanes), s3);
    }
    hn::StoreU(s0, d, to);
    hn::StoreU(s1, d, to + kLanes);
    hn::StoreU(s2, d, to + 2 * kLanes);
    hn::StoreU(s3, d, to + 3 * kLanes);
  }
  for (; j < columns; j += kLanes) {
    const size_t n = std::min(kLanes, columns - j);
    V sum = hn::Zero(d);
    for (size_t i = 0; i < rows; ++i) sum = hn::Add(sum, LoadN(x + i * columns + j, n));
    if (add) sum = hn::Add(LoadN(sums + j, n), sum);
    StoreN(sum, sums + j, n);
  }
}

}  // namespace

size_t SumRowsScratch(size_t rows, size_t columns) {
  return rows <= kChunkRows ? 0 : hwy::DivCeil(rows, kChunkRows) * columns;
}

void SumRows(const float* x, size_t rows, size_t columns, float* sums, bool add, float* scratch,
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

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
