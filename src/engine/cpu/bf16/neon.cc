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

inline uint16x4_t Narrow(float32x4_t values) {
  return vreinterpret_u16_bf16(vcvt_bf16_f32(values));
}

inline uint16x4_t LoadFour(const float* from) { return Narrow(vld1q_f32(from)); }
inline uint16x4_t LoadFour(const BFloat* from) { return vld1_u16(from); }

// Up to four values, then zeros.
template <class T>
inline uint16x4_t LoadLanes(const T* from, size_t n) {
  if (from == nullptr) return vdup_n_u16(0);
  if (n >= 4) return LoadFour(from);
  T lanes[4] = {};
  for (size_t i = 0; i < n; ++i) lanes[i] = from[i];
  return LoadFour(lanes);
}

template <size_t kLines, class T>
void PackAlong(const T* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t i = 0; i < kLines; ++i) {
    const T* line = i < count ? lines[i] : nullptr;
    BFloat* at = to + i * kStep;
    size_t k = 0;
    if (line != nullptr) {
      for (; k + kStep <= depth; k += kStep, at += kLines * kStep) {
        vst1_u16(at, LoadFour(line + k));
      }
    }
    for (; k < depth; k += kStep, at += kLines * kStep) {
      vst1_u16(at, LoadLanes(line ? line + k : nullptr, depth - k));
    }
  }
}

template <size_t kLines, class T>
void PackAcross(const T* const* lines, size_t count, size_t depth, BFloat* to) {
  for (size_t k = 0; k < depth; k += kStep, to += kLines * kStep) {
    for (size_t first = 0; first < kLines; first += 4) {
      const size_t n = first < count ? count - first : 0;
      uint16x4_t v[4];
      for (size_t i = 0; i < 4; ++i) {
        const T* line = k + i < depth ? lines[k + i] : nullptr;
        v[i] = LoadLanes(line ? line + first : nullptr, n);
      }
      // Turns four vectors over.
      const uint32x2_t low01 = vreinterpret_u32_u16(vzip1_u16(v[0], v[1]));
      const uint32x2_t high01 = vreinterpret_u32_u16(vzip2_u16(v[0], v[1]));
      const uint32x2_t low23 = vreinterpret_u32_u16(vzip1_u16(v[2], v[3]));
      const uint32x2_t high23 = vreinterpret_u32_u16(vzip2_u16(v[2], v[3]));
      BFloat* at = to + first * kStep;
      vst1_u16(at, vreinterpret_u16_u32(vzip1_u32(low01, low23)));
      vst1_u16(at + kStep, vreinterpret_u16_u32(vzip2_u32(low01, low23)));
      vst1_u16(at + 2 * kStep, vreinterpret_u16_u32(vzip1_u32(high01, high23)));
      vst1_u16(at + 3 * kStep, vreinterpret_u16_u32(vzip2_u32(high01, high23)));
    }
  }
}

void Begin() {}
void End() {}

inline bfloat16x8_t LoadPair(const BFloat* from) { return vreinterpretq_bf16_u16(vld1q_u16(from)); }

inline void StoreFour(float32x4_t value, float* to) { vst1q_f32(to, value); }
inline void StoreFour(float32x4_t value, BFloat* to) { vst1_u16(to, Narrow(value)); }

template <class T>
inline void StoreRows(const float* sums, T* const* rows, const TileTarget& into) {
  for (size_t r = 0; r < into.count; ++r, sums += kColumns) {
    T* c = rows[r] + into.first;
    const float* before = into.before ? into.before[r] + into.first : nullptr;
    const float* bias = into.bias ? into.bias + into.first : nullptr;
    const auto finish = [&](float32x4_t value, const float* first, const float* second) {
      if (first) value = vaddq_f32(vld1q_f32(first), value);
      if (second) value = vaddq_f32(value, vld1q_f32(second));
      // What is not a number stays.
      return into.relu ? vbslq_f32(vcltzq_f32(value), vdupq_n_f32(0), value) : value;
    };
    size_t j = 0;
    for (; j + 4 <= into.columns; j += 4) {
      StoreFour(
          finish(vld1q_f32(sums + j), before ? before + j : nullptr, bias ? bias + j : nullptr),
          c + j);
    }
    if (j == into.columns) continue;
    const size_t rest = into.columns - j;
    float first[4] = {}, second[4] = {};
    for (size_t i = 0; i < rest; ++i) {
      if (before) first[i] = before[j + i];
      if (bias) second[i] = bias[j + i];
    }
    T last[4];
    StoreFour(finish(vld1q_f32(sums + j), first, second), last);
    for (size_t i = 0; i < rest; ++i) c[j + i] = last[i];
  }
}

// Sums of kRows x kColumns to where they go.
inline void StoreTile(const float* sums, const TileTarget& into) {
  if (into.floats) {
    StoreRows(sums, into.floats, into);
  } else {
    StoreRows(sums, into.bfloats, into);
  }
}

void Multiply(size_t depth, const BFloat* a, const BFloat* b, const TileTarget& into) {
  for (size_t r = 0; r < into.count; ++r) {
    if (into.before) __builtin_prefetch(into.before[r] + into.first);
    if (into.floats) {
      __builtin_prefetch(into.floats[r] + into.first, 1);
    } else {
      __builtin_prefetch(into.bfloats[r] + into.first, 1);
    }
  }
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
    .floats = {neon::PackAlong<neon::kRows>, neon::PackAcross<neon::kRows>,
               neon::PackAcross<neon::kColumns>},
    .bfloats = {neon::PackAlong<neon::kRows>, neon::PackAcross<neon::kRows>,
                neon::PackAcross<neon::kColumns>},
    .pack_columns_along = neon::PackAlong<neon::kColumns>,
    .multiply = neon::Multiply,
    .run_chains = neon::RunChains,
};

}  // namespace trireme::cpu
