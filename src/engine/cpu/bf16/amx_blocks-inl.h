// Blocks of 32 x 32 sums over places, as weight gradients on AMX need them. To be included between
// HWY_PUSH_ATTRIBUTES and HWY_POP_ATTRIBUTES, inside a namespace.
//   rows     [channel][place]          a step (32 places) of 32 channels, turned over
//   columns  [half][pair of places][channel of the half][which of the pair]
// Halves are those of unpacking: channels 0-3, 8-11, 16-19, 24-27, and the others. A block's
// columns are in that order, [half of rows][half of columns][16][16], until it goes to memory.

#include "engine/cpu/bf16/x86_vectors-inl.h"

constexpr size_t kBlock = 32;  // channels
constexpr size_t kBlockSums = kBlock * kBlock;
constexpr size_t kStepValues = kBlock * kBlock;  // of 32 places
constexpr size_t kHalfStep = kStepValues / 2;
constexpr size_t kQuarter = kBlockSums / 4;

// gcc does not know that tile instructions read and write memory.
inline void SettleMemory() { asm volatile("" ::: "memory"); }

// The channel of a half's value.
constexpr size_t ChannelOf(size_t half, size_t i) { return i / 4 * 8 + half * 4 + i % 4; }

inline __m512i LoadChannels(const BFloat* line) { return _mm512_loadu_si512(line); }

// 32 lines' channels from `channel` on, as a step of columns.
inline void PackPairs(const BFloat* const* lines, size_t channel, BFloat* to) {
  for (size_t i = 0; i < kBlock; i += 2, to += kBlock) {
    const __m512i even = LoadChannels(lines[i] + channel);
    const __m512i odd = LoadChannels(lines[i + 1] + channel);
    _mm512_store_si512(to, _mm512_unpacklo_epi16(even, odd));
    _mm512_store_si512(to + kHalfStep, _mm512_unpackhi_epi16(even, odd));
  }
}

// The same as a step of rows. Lines are loaded once for each half: 32 vectors would not fit.
template <int kHalf>
inline void PackHalfTurned(const BFloat* const* lines, size_t channel, BFloat* to) {
  __m512i v[16];
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; ++i) {
    const __m512i even = LoadChannels(lines[2 * i] + channel);
    const __m512i odd = LoadChannels(lines[2 * i + 1] + channel);
    v[i] = kHalf ? _mm512_unpackhi_epi16(even, odd) : _mm512_unpacklo_epi16(even, odd);
  }
  Transpose(v);
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; ++i) _mm512_store_si512(to + ChannelOf(kHalf, i) * kBlock, v[i]);
}
inline void PackTurned(const BFloat* const* lines, size_t channel, BFloat* to) {
  PackHalfTurned<0>(lines, channel, to);
  PackHalfTurned<1>(lines, channel, to);
}

// Packed columns: step after step, or shifted by whole pairs.
struct PackedColumns {
  const BFloat* data;
  size_t step, half;  // values from step to step, from half to half
};

// block = sums over `steps` steps, on top of what it holds unless `fresh`. ahead() runs between
// products, to fetch what comes next.
template <class Ahead>
inline void AddSteps(const BFloat* rows, const PackedColumns& columns, size_t steps, bool fresh,
                     float* block, Ahead& ahead) {
  SettleMemory();
  if (fresh) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, block, 64);
    _tile_loadd(1, block + kQuarter, 64);
    _tile_loadd(2, block + 2 * kQuarter, 64);
    _tile_loadd(3, block + 3 * kQuarter, 64);
  }
  const BFloat* column = columns.data;
  for (size_t s = 0; s < steps; ++s, rows += kStepValues, column += columns.step) {
    _tile_loadd(6, column, 64);
    _tile_loadd(4, rows, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, column + columns.half, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, rows + kHalfStep, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    ahead();
  }
  _tile_stored(0, block, 64);
  _tile_stored(1, block + kQuarter, 64);
  _tile_stored(2, block + 2 * kQuarter, 64);
  _tile_stored(3, block + 3 * kQuarter, 64);
  SettleMemory();
}

// Where a block lies in a matrix of sums.
struct BlockPlace {
  float* first;
  size_t stride;
  bool turned;           // the block's rows are columns there
  size_t rows = kBlock;  // that the matrix has; all of them where it is turned
};

// Lanes of two vectors, one of each half: channels 0 .. 15, 16 .. 31, and back.
struct LaneOrders {
  alignas(64) int low[16], high[16], half[2][16];
};
constexpr LaneOrders MakeLaneOrders() {
  LaneOrders orders{};
  for (size_t h = 0; h < 2; ++h) {
    for (size_t i = 0; i < 16; ++i) {
      const size_t channel = ChannelOf(h, i);
      (channel < 16 ? orders.low : orders.high)[channel % 16] = int(h * 16 + i);
      orders.half[h][i] = int(channel);
    }
  }
  return orders;
}
constexpr LaneOrders kLaneOrders = MakeLaneOrders();

// 16 x 16 floats of a block turned over, to rows of `to` or from them.
inline void StoreTurned(const float* quarter, size_t half, float* to, size_t stride) {
  __m512i v[16];
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; ++i) v[i] = _mm512_load_si512(quarter + i * 16);
  Transpose(v);
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; ++i) _mm512_storeu_si512(to + ChannelOf(half, i) * stride, v[i]);
}
inline void LoadTurned(const float* from, size_t stride, size_t half, float* quarter) {
  __m512i v[16];
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; ++i) v[i] = _mm512_loadu_si512(from + ChannelOf(half, i) * stride);
  Transpose(v);
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; ++i) _mm512_store_si512(quarter + i * 16, v[i]);
}

// What the matrix holds becomes a block.
inline void LoadBlock(const BlockPlace& from, float* block) {
  for (size_t r = 0; r < 2; ++r, block += 2 * kQuarter) {
    if (from.turned) {
      LoadTurned(from.first + r * 16, from.stride, 0, block);
      LoadTurned(from.first + r * 16, from.stride, 1, block + kQuarter);
      continue;
    }
    const __m512i halves[2] = {_mm512_load_si512(kLaneOrders.half[0]),
                               _mm512_load_si512(kLaneOrders.half[1])};
    const float* row = from.first + r * 16 * from.stride;
    for (size_t i = 0; i < 16; ++i, row += from.stride) {
      if (r * 16 + i >= from.rows) {
        std::fill_n(block + i * 16, 16, 0.0f);
        std::fill_n(block + kQuarter + i * 16, 16, 0.0f);
        continue;
      }
      const __m512 low = _mm512_loadu_ps(row), high = _mm512_loadu_ps(row + 16);
      _mm512_store_ps(block + i * 16, _mm512_permutex2var_ps(low, halves[0], high));
      _mm512_store_ps(block + kQuarter + i * 16, _mm512_permutex2var_ps(low, halves[1], high));
    }
  }
}

// A block becomes what the matrix holds.
inline void StoreBlock(const float* block, const BlockPlace& to) {
  for (size_t r = 0; r < 2; ++r, block += 2 * kQuarter) {
    if (to.turned) {
      StoreTurned(block, 0, to.first + r * 16, to.stride);
      StoreTurned(block + kQuarter, 1, to.first + r * 16, to.stride);
      continue;
    }
    const __m512i orders[2] = {_mm512_load_si512(kLaneOrders.low),
                               _mm512_load_si512(kLaneOrders.high)};
    float* row = to.first + r * 16 * to.stride;
    for (size_t i = 0; i < 16 && r * 16 + i < to.rows; ++i, row += to.stride) {
      const __m512 one = _mm512_load_ps(block + i * 16);
      const __m512 other = _mm512_load_ps(block + kQuarter + i * 16);
      _mm512_storeu_ps(row, _mm512_permutex2var_ps(one, orders[0], other));
      _mm512_storeu_ps(row + 16, _mm512_permutex2var_ps(one, orders[1], other));
    }
  }
}

// A part's block grows in memory of its own; the only part's, null, where it is to go in the end.
template <class Ahead>
inline void GrowBlock(const BFloat* rows, const PackedColumns& columns, size_t steps, bool is_first,
                      float* of_part, const BlockPlace& place, bool add, Ahead& ahead) {
  if (of_part) return AddSteps(rows, columns, steps, is_first, of_part, ahead);
  alignas(64) float block[kBlockSums];
  const bool fresh = is_first && !add;
  if (!fresh) LoadBlock(place, block);
  AddSteps(rows, columns, steps, fresh, block, ahead);
  StoreBlock(block, place);
}

// The sums of `count` blocks that stand `stride` floats apart, added to what the matrix holds or
// instead of it.
inline void StoreParts(const float* blocks, size_t count, size_t stride, bool add,
                       const BlockPlace& to) {
  alignas(64) float sums[kBlockSums], before[kBlockSums];
  if (add) LoadBlock(to, before);
  for (size_t i = 0; i < kBlockSums; i += 16) {
    __m512 sum = _mm512_load_ps(blocks + i);
    for (size_t part = 1; part < count; ++part) {
      sum = _mm512_add_ps(sum, _mm512_load_ps(blocks + part * stride + i));
    }
    if (add) sum = _mm512_add_ps(_mm512_load_ps(before + i), sum);
    _mm512_store_ps(sums + i, sum);
  }
  StoreBlock(sums, to);
}
