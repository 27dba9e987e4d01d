// AVX512-BF16: each lane of a vector adds two products.
#include <immintrin.h>

#include <cstring>

#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/bf16/x86.h"
#include "hwy/base.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
namespace trireme::cpu::avx512 {
namespace {

constexpr size_t kRows = 8, kColumns = 32;  // 16 registers of sums

#include "engine/cpu/bf16/x86-inl.h"

inline __m512bh AsBFloats(__m512i bits) {
  __m512bh values;
  std::memcpy(&values, &bits, sizeof values);
  return values;
}
inline __m512bh LoadPairs(const BFloat* from) { return AsBFloats(_mm512_load_si512(from)); }
inline __m512bh BroadcastPair(const BFloat* from) {
  int32_t pair;
  std::memcpy(&pair, from, sizeof pair);
  return AsBFloats(_mm512_set1_epi32(pair));
}

void Begin() {}
void End() { _mm_sfence(); }  // after streams

void Multiply(size_t depth, const BFloat* a, const BFloat* b, const TileTarget& into) {
  PrefetchTarget(into);
  __m512 sum[kRows][2];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
  for (size_t k = 0; k < depth; k += kStep, a += kRows * kStep) {
    for (size_t p = 0; p < kStep; p += 2, b += 2 * kColumns) {
      const __m512bh first = LoadPairs(b), second = LoadPairs(b + 2 * kLanes);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        const __m512bh pair = BroadcastPair(a + r * kStep + p);
        sum[r][0] = _mm512_dpbf16_ps(sum[r][0], pair, first);
        sum[r][1] = _mm512_dpbf16_ps(sum[r][1], pair, second);
      }
    }
  }
  alignas(64) float sums[kRows * kColumns];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    _mm512_store_ps(sums + r * kColumns, sum[r][0]);
    _mm512_store_ps(sums + r * kColumns + kLanes, sum[r][1]);
  }
  StoreTile(sums, into);
}

double RunChains(size_t rounds) {
  constexpr int kChains = 24;
  __m512 sum[kChains];
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) sum[c] = _mm512_set1_ps(float(c));  // no two are the same
  __m512bh ones = AsBFloats(_mm512_set1_epi16(0x3f80));
  for (size_t i = 0; i < rounds; ++i) {
    asm volatile("" : "+v"(ones));  // nothing to work out ahead
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) sum[c] = _mm512_dpbf16_ps(sum[c], ones, ones);
  }
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) asm volatile("" : : "v"(sum[c]));
  return double(rounds) * kChains * 4 * kLanes;
}

}  // namespace
}  // namespace trireme::cpu::avx512
HWY_POP_ATTRIBUTES

namespace trireme::cpu {

extern const MatrixUnit kAvx512BFloat;
const MatrixUnit kAvx512BFloat = {
    .name = "AVX512-BF16",
    .rows = avx512::kRows,
    .columns = avx512::kColumns,
    .step = avx512::kStep,
    .depth = 512,
    .missing = MissingAvx512BFloat,
    .begin = avx512::Begin,
    .end = avx512::End,
    .floats = {avx512::PackRowsAlong, avx512::PackRowsAcross, avx512::PackColumnsAcross},
    .bfloats = {avx512::PackRowsAlong, avx512::PackRowsAcross, avx512::PackColumnsAcross},
    .pack_columns_along = avx512::PackColumnsAlong,
    .multiply = avx512::Multiply,
    .run_chains = avx512::RunChains,
};

}  // namespace trireme::cpu
