// Intel's AMX: registers of 16 rows of 64 bytes, eight of them.
#include <immintrin.h>

#include <cstring>

#include "engine/cpu/bf16/amx_images.h"
#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/bf16/x86.h"
#include "hwy/base.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")
namespace trireme::cpu::amx {

extern const WeightGradientKernels kPointwise, kTaps, kJoinedTaps;

namespace {

constexpr const WeightGradientKernels* kWeightGradients[] = {&kPointwise, &kTaps, &kJoinedTaps};

constexpr size_t kRows = 32, kColumns = 32;  // four registers of sums

#include "engine/cpu/bf16/x86-inl.h"

// Eight registers of their full size. In memory of its own: gcc does not see that all of it is
// read.
struct alignas(64) TileShape {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShape) == 64);
constexpr TileShape kShape;

void Begin() { _tile_loadconfig(&kShape); }

void End() {
  _mm_sfence();  // after streams
  _tile_release();
}

void Multiply(size_t depth, const BFloat* a, const BFloat* b, const TileTarget& into) {
  PrefetchTarget(into);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (size_t k = 0; k < depth; k += kStep, a += kRows * kStep, b += kColumns * kStep) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 128);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, a + 16 * kStep, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_loadd(7, b + 32, 128);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  alignas(64) float sums[kRows * kColumns];
  _tile_stored(0, sums, 128);
  _tile_stored(1, sums + 16, 128);
  _tile_stored(2, sums + 16 * kColumns, 128);
  _tile_stored(3, sums + 16 * kColumns + 16, 128);
  StoreTile(sums, into);
}

double RunChains(size_t rounds) {
  Begin();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (size_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  End();
  return double(rounds) * 4 * 2 * 16 * 16 * 32;
}

}  // namespace
}  // namespace trireme::cpu::amx
HWY_POP_ATTRIBUTES

namespace trireme::cpu {

namespace amx {
constexpr ImageUnit kImages = {MultiplyRows, MultiplyTaps, NarrowLine};
}

extern const MatrixUnit kAmx;
const MatrixUnit kAmx = {
    .name = "AMX",
    .rows = amx::kRows,
    .columns = amx::kColumns,
    .step = amx::kStep,
    .depth = 512,
    .missing = MissingAmx,
    .begin = amx::Begin,
    .end = amx::End,
    .floats = {amx::PackRowsAlong, amx::PackRowsAcross, amx::PackColumnsAcross},
    .bfloats = {amx::PackRowsAlong, amx::PackRowsAcross, amx::PackColumnsAcross},
    .pack_columns_along = amx::PackColumnsAlong,
    .multiply = amx::Multiply,
    .weight_gradients = amx::kWeightGradients,
    .run_chains = amx::RunChains,
    .images = &amx::kImages,
};

}  // namespace trireme::cpu
