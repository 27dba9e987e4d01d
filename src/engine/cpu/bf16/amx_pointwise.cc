// Weight gradients of 1x1 convolutions on AMX: dw[in][out] = transposed x * dy.
// The side with fewer channels becomes rows of tiles, which is the dearer packing; pairs of the
// other side's pixels become columns. Both are packed a chunk of pixels at a time, so that they
// stay in the second cache, and the next chunk is fetched beside the products.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "engine/cpu/bf16/pixel_grid.h"
#include "engine/cpu/bf16/place_parts.h"
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
using bf16::WholeSteps;

#include "engine/cpu/bf16/amx_blocks-inl.h"

// Measured on ResNet-50's layers (Sapphire Rapids, 2 MiB of second cache a core).
constexpr size_t kLeastPlaces = 3000;       // of a part
constexpr size_t kMostSums = 512 * 1024;    // of all parts
constexpr size_t kMostChunk = 1024;         // pixels
constexpr size_t kManyPlaces = 3000;        // from so many on, chunks are
constexpr size_t kShortChunk = 256;         // so long, and the first cache keeps sums
constexpr size_t kRowValues = 416 * 1024;   // of packed rows that stay in the second cache
constexpr size_t kPairValues = 256 * 1024;  // of packed columns beside them
constexpr size_t kMostRows = 4096;          // channels of the side that has fewer

bool Take(const ConvShape& s) {
  return s.kernel == 1 && s.padding == 0 && s.in % kBlock == 0 && s.out % kBlock == 0 &&
         std::min(s.in, s.out) <= kMostRows;
}

// What the shape alone decides.
struct Plan {
  size_t places, in, out;
  size_t row_blocks, column_blocks;
  PlaceParts parts;

  Plan(const ConvShape& s, size_t samples)
      : places(samples * s.out_pixels()),
        in(s.in),
        out(s.out),
        row_blocks(std::min(in, out) / kBlock),
        column_blocks(std::max(in, out) / kBlock),
        parts(places, in * out, kLeastPlaces, kMostSums) {}

  bool turned() const { return in > out; }
  size_t longest() const { return std::min(kMostChunk, WholeSteps(places)); }  // chunk
  // What a thread has of its own: rows, columns, a line of zeros.
  size_t row_values() const { return std::min(kRowValues, row_blocks * kBlock * longest()); }
  size_t column_values() const { return std::min(kPairValues, column_blocks * kBlock * longest()); }
  size_t thread_values() const { return row_values() + column_values() + std::max(in, out); }
};

// What is packed next, fetched into the second cache a few cache lines at a time.
class FetchAhead {
 public:
  // Values [channel, end_channel) of places [first, last).
  void Add(const PixelGrid& grid, size_t first, size_t last, size_t channel, size_t end_channel) {
    if (first >= last) return;
    parts_[count_++] = {&grid, first, last, channel, end_channel};
    lines_ += (last - first) * (end_channel - channel) / kLine;
  }
  // Over most of so many steps.
  void Spread(size_t steps) {
    each_ = lines_ / std::max<size_t>(1, steps * 3 / 4) + 1;
    if (count_ > 0) Find();
  }

  void operator()() {
    for (size_t i = 0; i < each_ && part_ < count_; ++i) {
      Part& part = parts_[part_];
      __builtin_prefetch(line_ + at_, 0, 2);
      if ((at_ += kLine) < part.end_channel) continue;
      at_ = part.channel;
      if (++part.first == part.last) {
        if (++part_ < count_) Find();
      } else if (is_matrix_) {
        line_ += part.grid->column_stride;
      } else {
        part.grid->Lines(ptrdiff_t(part.first), 1, line_, &line_);
      }
    }
  }

 private:
  static constexpr size_t kLine = 32;  // values of a cache line
  struct Part {
    const PixelGrid* grid;
    size_t first, last, channel, end_channel;
  };

  void Find() {
    const Part& part = parts_[part_];
    at_ = part.channel;
    is_matrix_ = part.grid->IsMatrix();
    part.grid->Lines(ptrdiff_t(part.first), 1, part.grid->first, &line_);
  }

  Part parts_[2];
  size_t count_ = 0, part_ = 0, lines_ = 0, each_ = 0, at_ = 0;
  const BFloat* line_ = nullptr;
  bool is_matrix_ = false;
};

BlockPlace PlaceOf(const Plan& plan, float* dw, size_t r, size_t column) {
  if (plan.turned()) std::swap(r, column);
  return {dw + (r * plan.out + column) * kBlock, plan.out, plan.turned()};
}

struct Task {
  const Plan& plan;
  const PixelGrid &rows, &columns;
  const SumShare share;
  float* dw;    // or, of several parts,
  float* sums;  // this one's blocks
  bool add;
  BFloat *packed_rows, *packed_columns;
  const BFloat* zeros;

  void Run() const {
    const size_t span = share.places(), most = MostPlaces(span);
    const size_t chunks = (span + most - 1) / most,
                 chunk = WholeSteps((span + chunks - 1) / chunks);
    for (size_t at = share.begin; at < share.end; at += chunk)
      RunChunk(at, std::min(share.end, at + chunk), chunk);
  }

 private:
  size_t MostPlaces(size_t span) const {
    const size_t fitting = kRowValues / (share.rows() * kBlock) / kBlock * kBlock;
    return std::min(fitting, span >= kManyPlaces ? kShortChunk : kMostChunk);
  }

  void RunChunk(size_t first, size_t last, size_t chunk) const {
    const size_t steps = (last - first + kBlock - 1) / kBlock;
    for (size_t s = 0; s < steps; ++s) {
      const BFloat* lines[kBlock];
      FindLines(rows, first + s * kBlock, last, lines);
      for (size_t r = share.row_begin; r < share.row_end; ++r) {
        PackTurned(lines, r * kBlock,
                   packed_rows + ((r - share.row_begin) * steps + s) * kStepValues);
      }
    }
    const size_t group = std::max<size_t>(1, kPairValues / (steps * kStepValues));
    for (size_t c = share.column_begin; c < share.column_end; c += group) {
      const size_t group_end = std::min(share.column_end, c + group);
      PackColumns(first, last, steps, c, group_end);
      FetchAhead ahead;
      if (group_end < share.column_end) {
        ahead.Add(columns, first, last, group_end * kBlock,
                  std::min(share.column_end, group_end + group) * kBlock);
      } else {
        const size_t next = std::min(share.end, last + chunk);
        ahead.Add(columns, last, next, share.column_begin * kBlock,
                  std::min(share.column_end, share.column_begin + group) * kBlock);
        ahead.Add(rows, last, next, share.row_begin * kBlock, share.row_end * kBlock);
      }
      ahead.Spread(share.rows() * (group_end - c) * steps);
      for (size_t column = c; column < group_end; ++column) {
        for (size_t r = share.row_begin; r < share.row_end; ++r) {
          RunBlock(r, column, steps, first == share.begin,
                   packed_columns + (column - c) * steps * kStepValues, ahead);
        }
      }
    }
  }

  void PackColumns(size_t first, size_t last, size_t steps, size_t c, size_t group_end) const {
    for (size_t s = 0; s < steps; ++s) {
      const BFloat* lines[kBlock];
      FindLines(columns, first + s * kBlock, last, lines);
      for (size_t column = c; column < group_end; ++column) {
        PackPairs(lines, column * kBlock,
                  packed_columns + ((column - c) * steps + s) * kStepValues);
      }
    }
  }

  // A part's last step may reach beyond it: those places are another part's.
  void FindLines(const PixelGrid& grid, size_t first, size_t last, const BFloat** lines) const {
    const size_t count = std::min(kBlock, last - first);
    grid.Lines(ptrdiff_t(first), count, zeros, lines);
    std::fill(lines + count, lines + kBlock, zeros);
  }

  void RunBlock(size_t r, size_t column, size_t steps, bool is_first, const BFloat* pairs,
                FetchAhead& ahead) const {
    const BFloat* lines = packed_rows + (r - share.row_begin) * steps * kStepValues;
    const PackedColumns packed = {pairs, kStepValues, kHalfStep};
    float* of_part = sums ? sums + (r * plan.column_blocks + column) * kBlockSums : nullptr;
    GrowBlock(lines, packed, steps, is_first, of_part, PlaceOf(plan, dw, r, column), add, ahead);
  }
};

void AddParts(const Plan& plan, const float* sums, size_t begin, size_t end, bool add, float* dw) {
  for (size_t i = begin; i < end; ++i) {
    StoreParts(sums + i * kBlockSums, plan.parts.count(), plan.in * plan.out, add,
               PlaceOf(plan, dw, i / plan.column_blocks, i % plan.column_blocks));
  }
}

void Run(const WeightGradient& g, BFloat* scratch, Team& team) {
  const ConvShape& s = g.shape;
  const Plan plan(s, g.samples);
  const PixelGrid x = {.first = g.x,
                       .samples = g.samples,
                       .rows = s.out_height,
                       .columns = s.out_width,
                       .height = s.out_height,
                       .width = s.out_width,
                       .sample_stride = s.in_pixels() * s.in,
                       .row_stride = s.stride * s.width * s.in,
                       .column_stride = s.stride * s.in};
  PixelGrid dy = x;
  dy.first = g.dy;
  dy.sample_stride = s.out_pixels() * s.out;
  dy.row_stride = s.out_width * s.out;
  dy.column_stride = s.out;
  const PixelGrid &rows = plan.turned() ? dy : x, &columns = plan.turned() ? x : dy;
  const size_t threads = size_t(team.size()), parts = plan.parts.count();
  const BlockSplit shares(plan.parts, plan.row_blocks, plan.column_blocks, threads,
                          {.product = 1, .row = 2, .column = 1});
  float* sums = reinterpret_cast<float*>(scratch + threads * plan.thread_values());
  ParallelFor(team, shares.count(), 1, [&](size_t begin, size_t end, size_t thread) {
    BFloat* own = scratch + thread * plan.thread_values();
    BFloat* zeros = own + plan.row_values() + plan.column_values();
    std::fill_n(zeros, std::max(s.in, s.out), BFloat(0));
    kAmx.begin();
    for (size_t i = begin; i < end; ++i) {
      const SumShare share = shares[i];
      Task{.plan = plan,
           .rows = rows,
           .columns = columns,
           .share = share,
           .dw = g.dw,
           .sums = parts > 1 ? sums + share.part * s.in * s.out : nullptr,
           .add = g.add,
           .packed_rows = own,
           .packed_columns = own + plan.row_values(),
           .zeros = zeros}
          .Run();
    }
    kAmx.end();
  });
  if (parts == 1) return;
  ParallelFor(team, plan.row_blocks * plan.column_blocks, 1 + 16 / parts,
              [&](size_t begin, size_t end) { AddParts(plan, sums, begin, end, g.add, g.dw); });
}

size_t Scratch(const ConvShape& s, size_t samples, size_t threads) {
  const Plan plan(s, samples);
  return threads * plan.thread_values() + 2 * plan.parts.floats();
}

}  // namespace

extern const WeightGradientKernels kPointwise;
const WeightGradientKernels kPointwise = {
    .wide = false, .take = Take, .run = Run, .scratch = Scratch};

}  // namespace trireme::cpu::amx
HWY_POP_ATTRIBUTES
