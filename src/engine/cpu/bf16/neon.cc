// Arm's BFMMLA: two rows of four values of A times four values of two columns of B.
//   A, B  [k / 4][line][k % 4]
#include <arm_neon.h>
#include <sys/auxv.h>

#include "engine/cpu/bf16/unit.h"
#include "hwy/base.h"

HWY_PUSH_ATTRIBUTES("arch=armv8.2-a+bf16")
namespace trireme::cpu::neon {
namespace {

constexpr size_t kRows = 12, kColumns = 8;  // 24 registers of sums
constexpr size_t kStep = 4;                 // values of k

// Up to four floats, then zeros.
inline float32x4_t LoadLanes(const float* from, size_t n) {
  if (from == nullptr) return vdupq_n_f32(0);
  if (n >= 4) return vld1q_f32(from);
  float lanes[4] = {};
  for (size_t i = 0; i < n; ++i) lanes[i] = from[i];
  return vld1q_f32(lanes);
}

inline void StoreNarrow(float32x4_t values, BFloat* to) {
  vst1_u16(to, vreinterpret_u16_bf16(vcvt_bf16_f32(values)));
}

template <size_t kLines>
void PackAlong(const float* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t i = 0; i < kLines; ++i) {
    const float* line = i < count ? lines[i] : nullptr;
    BFloat* at = to + i * kStep;
    size_t k = 0;
    if (line != nullptr) {
      for (; k + kStep <= depth; k += kStep, at += kLines * kStep) {
        StoreNarrow(vld1q_f32(line + k), at);
      }
    }
    for (; k < depth; k += kStep, at += kLines * kStep) {
      StoreNarrow(LoadLanes(line ? line + k : nullptr, depth - k), at);
    }
  }
}

template <size_t kLines>
void PackAcross(const float* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t k = 0; k < depth; k += kStep, to += kLines * kStep) {
    for (size_t first = 0; first < kLines; first += 4) {
      const size_t n = first < count ? count - first : 0;
      float32x4_t v[4];
      for (size_t i = 0; i < 4; ++i) {
        const float* line = k + i < depth ? lines[k + i] : nullptr;
        v[i] = LoadLanes(line ? line + first : nullptr, n);
      }
      // Turns four vectors over.
      const float64x2_t low01 = vreinterpretq_f64_f32(vzip1q_f32(v[0], v[1]));
      const float64x2_t high01 = vreinterpretq_f64_f32(vzip2q_f32(v[0], v[1]));
      const float64x2_t low23 = vreinterpretq_f64_f32(vzip1q_f32(v[2], v[3]));
      const float64x2_t high23 = vreinterpretq_f64_f32(vzip2q_f32(v[2], v[3]));
      BFloat* at = to + first * kStep;
      StoreNarrow(vreinterpretq_f32_f64(vzip1q_f64(low01, low23)), at);
      StoreNarrow(vreinterpretq_f32_f64(vzip2q_f64(low01, low23)), at + kStep);
      StoreNarrow(vreinterpretq_f32_f64(vzip1q_f64(high01, high23)), at + 2 * kStep);
      StoreNarrow(vreinterpretq_f32_f64(vzip2q_f64(high01, high23)), at + 3 * kStep);
    }
  }
}

void Begin() {}
void End() {}

inline bfloat16x8_t LoadPair(const BFloat* from) { return vreinterpretq_bf16_u16(vld1q_u16(from)); }

// Sums of kRows x kColumns to where they go.
inline void StoreTile(const float* sums, const TileTarget& into) {
  for (size_t r = 0; r < into.count; ++r, sums += kColumns) {
    float* c = into.rows[r] + into.first;
    const float* bias = into.bias ? into.bias + into.first : nullptr;
    size_t j = 0;
    for (; j + 4 <= into.columns; j += 4) {
      float32x4_t value = vld1q_f32(sums + j);
      if (into.add) {
        value = vaddq_f32(vld1q_f32(c + j), value);
      } else if (bias) {
        value = vaddq_f32(value, vld1q_f32(bias + j));
      }
      if (into.relu) {  // what is not a number stays
        value = vbslq_f32(vcltzq_f32(value), vdupq_n_f32(0), value);
      }
      vst1q_f32(c + j, value);
    }
    for (; j < into.columns; ++j) {
      const float value = into.add ? c[j] + sums[j] : bias ? sums[j] + bias[j] : sums[j];
      c[j] = into.relu && value < 0 ? 0 : value;
    }
  }
}

void Multiply(size_t depth, const BFloat* a, const BFloat* b, const TileTarget& into) {
  for (size_t r = 0; r < into.count; ++r) __builtin_prefetch(into.rows[r] + into.first, 1);
  float32x4_t sum[kRows / 2][kColumns / 2];
#pragma GCC unroll 6
  for (size_t i = 0; i < kRows / 2; ++i) {
#pragma GCC unroll 4
    for (size_t j = 0; j < kColumns / 2; ++j) sum[i][j] = vdupq_n_f32(0);
  }
  for (size_t k = 0; k < depth; k += kStep, a += kRows * kStep, b += kColumns * kStep) {
    const bfloat16x8_t b0 = LoadPair(b), b1 = LoadPair(b + 8);
    const bfloat16x8_t b2 = LoadPair(b + 16), b3 = LoadPair(b + 24);
#pragma GCC unroll 6
    for (size_t i = 0; i < kRows / 2; ++i) {
      const bfloat16x8_t down = LoadPair(a + i * 8);
      sum[i][0] = vbfmmlaq_f32(sum[i][0], down, b0);
      sum[i][1] = vbfmmlaq_f32(sum[i][1], down, b1);
      sum[i][2] = vbfmmlaq_f32(sum[i][2], down, b2);
      sum[i][3] = vbfmmlaq_f32(sum[i][3], down, b3);
    }
  }
  float sums[kRows * kColumns];
#pragma GCC unroll 6
  for (size_t i = 0; i < kRows / 2; ++i) {
#pragma GCC unroll 4
    for (size_t j = 0; j < kColumns / 2; ++j) {
      vst1_f32(sums + 2 * i * kColumns + 2 * j, vget_low_f32(sum[i][j]));
      vst1_f32(sums + (2 * i + 1) * kColumns + 2 * j, vget_high_f32(sum[i][j]));
    }
  }
  StoreTile(sums, into);
}

double RunChains(size_t rounds) {
  constexpr int kChains = 24;
  float32x4_t sum[kChains];
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) sum[c] = vdupq_n_f32(float(c));  // no two are the same
  BFloat one = 0x3f80;
  asm volatile("" : "+r"(one));  // gcc 12 would make an instruction of it that is not there
  bfloat16x8_t ones = vreinterpretq_bf16_u16(vdupq_n_u16(one));
  for (size_t i = 0; i < rounds; ++i) {
    asm volatile("" : "+w"(ones));  // nothing to work out ahead
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) sum[c] = vbfmmlaq_f32(sum[c], ones, ones);
  }
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) asm volatile("" : : "w"(sum[c]));
  return double(rounds) * kChains * 2 * 2 * 2 * 4;
}

std::string Missing() {
  constexpr unsigned long kHasBFloat = 1ul << 14;  // HWCAP2_BF16
  return getauxval(AT_HWCAP2) & kHasBFloat ? "" : "the processor has no BFMMLA (Armv8.6 bf16)";
}

}  // namespace
}  // namespace trireme::cpu::neon
HWY_POP_ATTRIBUTES

namespace trireme::cpu {

extern const MatrixUnit kNeonBFloat;
const MatrixUnit kNeonBFloat = {
    .name = "BFMMLA",
    .rows = neon::kRows,
    .columns = neon::kColumns,
    .step = neon::kStep,
    .depth = 512,
    .missing = neon::Missing,
    .begin = neon::Begin,
    .end = neon::End,
    .pack_rows_along = neon::PackAlong<neon::kRows>,
    .pack_rows_across = neon::PackAcross<neon::kRows>,
    .pack_columns_along = neon::PackAlong<neon::kColumns>,
    .pack_columns_across = neon::PackAcross<neon::kColumns>,
    .multiply = neon::Multiply,
    .run_chains = neon::RunChains,
};

}  // namespace trireme::cpu
