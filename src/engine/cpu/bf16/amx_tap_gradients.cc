// Weight gradients of convolutions with several taps on AMX:
// dw[tap][in][out] = sum over places of x[place][in] * dy[place - shift of the tap][out].
// x becomes rows of tiles once; pairs of dy's places become columns twice, from even and from odd
// places: the shift of a tap is then one by whole, aligned rows of tiles. x stays in the second
// cache for a stretch of places, beside 32 channels of dy at a time.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "engine/cpu/bf16/pixel_grid.h"
#include "engine/cpu/bf16/place_parts.h"
#include "engine/cpu/bf16/tap_plan.h"
#include "engine/cpu/bf16/weight_gradient.h"
#include "hwy/base.h"

namespace trireme::cpu {
extern const MatrixUnit kAmx;
}

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")
namespace trireme::cpu::amx {
namespace {

using bf16::BlockSplit;
using bf16::PixelGrid;
using bf16::PlaceParts;
using bf16::SumShare;
using bf16::TapPlan;
using bf16::WholeSteps;

#include "engine/cpu/bf16/amx_blocks-inl.h"
#include "engine/cpu/bf16/amx_joined_rows-inl.h"

// The pixels of x that the taps of a phase meet.
struct PixelRows {
  PixelGrid phases[TapPlan::kMostStride * TapPlan::kMostStride];

  PixelRows(const TapPlan& plan, const BFloat* x) {
    const ConvShape& s = plan.shape;
    for (size_t i = 0; i < plan.num_phases; ++i) {
      const TapPlan::Phase& phase = plan.phases[i];
      phases[i] = {.first = x + (phase.y * s.width + phase.x) * s.in,
                   .samples = plan.samples,
                   .rows = plan.grid_rows,
                   .columns = plan.grid_columns,
                   .height = plan.y.Pixels(phase.y),
                   .width = plan.x.Pixels(phase.x),
                   .sample_stride = s.in_pixels() * s.in,
                   .row_stride = s.stride * s.width * s.in,
                   .column_stride = s.stride * s.in};
    }
  }

  void Lines(size_t phase, size_t begin, size_t count, const BFloat* zeros, BFloat*,
             const BFloat** lines) const {
    phases[phase].Lines(ptrdiff_t(begin), count, zeros, lines);
  }
};

// Some channels of lines from a table, fetched into the second cache a few at a time.
struct FetchLines {
  const BFloat* const* lines;
  size_t count, channel, each, at = 0;

  void operator()() {
    const size_t end = std::min(count, at + each);
    for (; at < end; ++at) __builtin_prefetch(lines[at] + channel, 0, 2);
  }
};

BlockPlace PlaceOf(const TapPlan& plan, float* dw, size_t tap, size_t r, size_t column) {
  const size_t out = plan.shape.out;
  return {.first = dw + (tap * plan.row_values + r * kBlock) * out + column * kBlock,
          .stride = out,
          .turned = false,
          .rows = plan.row_values - r * kBlock};
}

template <class Rows>
struct Task {
  const TapPlan& plan;
  const Rows& x;
  const PixelGrid& dy;
  const SumShare share;
  float* dw;    // or, of several parts,
  float* sums;  // this one's blocks
  bool add;
  BFloat* memory;
  const BFloat* zeros;

  void Run() const {
    const size_t span = share.places(), most = plan.Most(share.rows());
    const size_t stretches = (span + most - 1) / most;
    const size_t length = WholeSteps((span + stretches - 1) / stretches);
    for (size_t at = share.begin; at < share.end; at += length)
      RunStretch(at, std::min(share.end, at + length));
  }

 private:
  void RunStretch(size_t first, size_t last) const {
    const size_t steps = (last - first + kBlock - 1) / kBlock, length = steps * kBlock;
    const size_t blocks = share.rows();
    PackRows(first, last, steps);
    BFloat* columns = memory + plan.RowValues(length, blocks);
    const auto lines = reinterpret_cast<const BFloat**>(columns + plan.ColumnValues(length));
    const size_t count = plan.Lines(length);
    dy.Lines(ptrdiff_t(first) - ptrdiff_t(plan.head), count, zeros, lines);
    const size_t all_steps = blocks * plan.num_taps * steps;
    for (size_t column = share.column_begin; column < share.column_end; ++column) {
      PackColumns(lines, length, column * kBlock, columns);
      FetchLines ahead = {.lines = lines,
                          .count = column + 1 < share.column_end ? count : 0,
                          .channel = (column + 1) * kBlock,
                          .each = count / std::max<size_t>(1, all_steps * 3 / 4) + 1};
      for (size_t r = share.row_begin; r < share.row_end; ++r) {
        for (size_t tap = 0; tap < plan.num_taps; ++tap) {
          RunBlock(tap, r, column, steps, first == share.begin, columns, ahead);
        }
      }
    }
  }

  void PackRows(size_t first, size_t last, size_t steps) const {
    const size_t blocks = share.rows();
    for (size_t phase = 0; phase < plan.num_phases; ++phase) {
      BFloat* to = memory + phase * blocks * steps * kStepValues;
      for (size_t s = 0; s < steps; ++s, to += kStepValues) {
        alignas(64) BFloat store[kStepValues];
        const BFloat* lines[kBlock];
        const size_t at = first + s * kBlock, count = std::min(kBlock, last - at);
        x.Lines(phase, at, count, zeros, store, lines);
        std::fill(lines + count, lines + kBlock, zeros);  // another part's, or none
        for (size_t r = share.row_begin; r < share.row_end; ++r) {
          PackTurned(lines, r * kBlock, to + (r - share.row_begin) * steps * kStepValues);
        }
      }
    }
  }

  // Pairs from even places, then pairs from odd ones, two halves each.
  void PackColumns(const BFloat* const* lines, size_t length, size_t channel, BFloat* to) const {
    const size_t half = plan.HalfValues(length), pairs = plan.Lines(length) / 2 - 1;
    BFloat* odd = to + 2 * half;
    __m512i a = LoadChannels(lines[0] + channel);
    for (size_t i = 0; i < pairs; ++i, to += kBlock, odd += kBlock) {
      const __m512i b = LoadChannels(lines[2 * i + 1] + channel);
      const __m512i c = LoadChannels(lines[2 * i + 2] + channel);
      if (plan.has_even) {
        _mm512_store_si512(to, _mm512_unpacklo_epi16(a, b));
        _mm512_store_si512(to + half, _mm512_unpackhi_epi16(a, b));
      }
      if (plan.has_odd) {
        _mm512_store_si512(odd, _mm512_unpacklo_epi16(b, c));
        _mm512_store_si512(odd + half, _mm512_unpackhi_epi16(b, c));
      }
      a = c;
    }
  }

  void RunBlock(size_t tap, size_t r, size_t column, size_t steps, bool is_first,
                const BFloat* columns, FetchLines& ahead) const {
    const size_t half = plan.HalfValues(steps * kBlock), phase = plan.taps[tap].phase;
    const size_t from = size_t(ptrdiff_t(plan.head) - plan.taps[tap].shift);  // a place of dy
    const PackedColumns packed = {columns + (from % 2 ? 2 * half : 0) + from / 2 * kBlock,
                                  kHalfStep, half};
    const BFloat* rows =
        memory + (phase * share.rows() + r - share.row_begin) * steps * kStepValues;
    const size_t at = (tap * plan.row_blocks + r) * plan.column_blocks + column;
    GrowBlock(rows, packed, steps, is_first, sums ? sums + at * kBlockSums : nullptr,
              PlaceOf(plan, dw, tap, r, column), add, ahead);
  }
};

void AddParts(const TapPlan& plan, size_t parts, const float* sums, size_t begin, size_t end,
              bool add, float* dw) {
  for (size_t i = begin; i < end; ++i) {
    const size_t r = i / plan.column_blocks;
    StoreParts(sums + i * kBlockSums, parts, plan.sums(), add,
               PlaceOf(plan, dw, r / plan.row_blocks, r % plan.row_blocks, i % plan.column_blocks));
  }
}

template <class Rows>
void RunOn(const WeightGradient& g, const TapPlan& plan, const Rows& x, BFloat* scratch,
           Team& team) {
  const ConvShape& s = plan.shape;
  const PlaceParts parts = plan.parts();
  const PixelGrid dy = {.first = g.dy,
                        .samples = g.samples,
                        .rows = plan.grid_rows,
                        .columns = plan.grid_columns,
                        .height = s.out_height,
                        .width = s.out_width,
                        .sample_stride = s.out_pixels() * s.out,
                        .row_stride = s.out_width * s.out,
                        .column_stride = s.out};
  const size_t threads = size_t(team.size());
  const BlockSplit shares(parts, plan.row_blocks, plan.column_blocks, threads,
                          {.product = plan.num_taps, .row = 2 * plan.num_phases, .column = 2});
  const size_t values = plan.ThreadValues(), channels = std::max(s.in, s.out);
  float* sums = reinterpret_cast<float*>(scratch + threads * values);
  ParallelFor(team, shares.count(), 1, [&](size_t begin, size_t end, size_t thread) {
    BFloat *own = scratch + thread * values, *zeros = own + values - channels;
    std::fill_n(zeros, channels, BFloat(0));
    kAmx.begin();
    for (size_t i = begin; i < end; ++i) {
      const SumShare share = shares[i];
      Task<Rows>{.plan = plan,
                 .x = x,
                 .dy = dy,
                 .share = share,
                 .dw = g.dw,
                 .sums = parts.count() > 1 ? sums + share.part * plan.sums() : nullptr,
                 .add = g.add,
                 .memory = own,
                 .zeros = zeros}
          .Run();
    }
    kAmx.end();
  });
  if (parts.count() == 1) return;
  const size_t blocks = plan.num_taps * plan.row_blocks * plan.column_blocks;
  ParallelFor(team, blocks, 1 + 16 / parts.count(), [&](size_t begin, size_t end) {
    AddParts(plan, parts.count(), sums, begin, end, g.add, g.dw);
  });
}

void Run(const WeightGradient& g, BFloat* scratch, Team& team) {
  const TapPlan plan(g.shape, g.samples, false);
  RunOn(g, plan, PixelRows(plan, g.x), scratch, team);
}
void RunJoined(const WeightGradient& g, BFloat* scratch, Team& team) {
  const TapPlan plan(g.shape, g.samples, true);
  RunOn(g, plan, JoinedRows{g.wide_x, plan}, scratch, team);
}

bool Take(const ConvShape& s) { return TapPlan::Takes(s, false); }
bool TakeJoined(const ConvShape& s) { return TapPlan::Takes(s, true); }

template <bool kJoined>
size_t Scratch(const ConvShape& s, size_t samples, size_t threads) {
  const TapPlan plan(s, samples, kJoined);
  return threads * plan.ThreadValues() + 2 * plan.parts().floats();
}

}  // namespace

extern const WeightGradientKernels kTaps, kJoinedTaps;
const WeightGradientKernels kTaps = {
    .wide = false, .take = Take, .run = Run, .scratch = Scratch<false>};
const WeightGradientKernels kJoinedTaps = {
    .wide = true, .take = TakeJoined, .run = RunJoined, .scratch = Scratch<true>};

}  // namespace trireme::cpu::amx
HWY_POP_ATTRIBUTES
