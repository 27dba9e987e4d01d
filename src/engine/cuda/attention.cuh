#pragma once
#include <cmath>

#include "engine/cuda/attention.h"
#include "engine/cuda/tensor_cores.cuh"

// What attention and its gradient share. Each warp of a block has kOwn rows of a head (queries, or
// keys with their values), whose numbers stay in registers; the block goes through the others a
// tile at a time, which lies in shared memory. Heads of more than kDepth channels are taken
// kDepth at a time: scores are sums over these parts, and a block makes one part of the results.

namespace trireme::cuda {

constexpr int kAttentionWarps = 4, kAttentionThreads = 32 * kAttentionWarps;
constexpr int kOwn = 16, kOwnOfBlock = kOwn * kAttentionWarps, kDepth = 64;
constexpr float kLog2E = 1.44269504f;  // powers of 2 are quicker than those of e

__device__ inline int Quad() { return int(threadIdx.x) % 32 / 4; }
__device__ inline int PlaceInQuad() { return int(threadIdx.x) % 4; }

// Over the threads that have the same rows.
template <class F>
__device__ __forceinline__ float ReduceQuad(float value, const F& join) {
  value = join(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return join(value, __shfl_xor_sync(0xffffffffu, value, 2));
}
__device__ __forceinline__ float SumQuad(float value) {
  return ReduceQuad(value, [](float a, float b) { return a + b; });
}

// Rows of a head: `columns` numbers each, `stride` apart. What lies outside reads as 0.
template <class N>
struct Lines {
  N* begin;
  size_t stride;
  int rows, columns;

  // Do all of 16 bytes begin at a multiple of them?
  __device__ bool InPacks() const { return columns % kPack<N> == 0; }
  __device__ N* At(int row, int column) const { return begin + row * stride + column; }
  __device__ bool Has(int row, int column) const { return row < rows && column < columns; }

  // The numbers of a word: two of 16 bits, from an even column on, or a float.
  __device__ __forceinline__ unsigned Word(int row, int column) const {
    if (!Has(row, column)) return 0;
    const N* const from = At(row, column);
    if constexpr (sizeof(N) == 4) {
      return __float_as_uint(*from);
    } else {
      if (InPacks()) return *reinterpret_cast<const unsigned*>(from);
      const unsigned first = Bits(from[0]);
      return column + 1 < columns ? first | Bits(from[1]) << 16 : first;
    }
  }
  __device__ __forceinline__ void Set(int row, int column, float first, float second) const {
    if (!Has(row, column)) return;
    N* const to = At(row, column);
    if constexpr (sizeof(N) == 2) {
      if (InPacks()) {
        const auto pair = Pair<N>::Round(first, second);
        *reinterpret_cast<unsigned*>(to) = *reinterpret_cast<const unsigned*>(&pair);
        return;
      }
    }
    to[0] = N(first);
    if (column + 1 < columns) to[1] = N(second);
  }

 private:
  static __device__ unsigned Bits(const N& number) {
    return *reinterpret_cast<const unsigned short*>(&number);
  }
};

// Which rows of which head a block has, and which part of their channels it makes.
struct Share {
  size_t sample;
  int head, own, part;  // the first row, the first channel

  __device__ explicit Share(const AttentionSizes& s) {
    const unsigned parts = unsigned(s.channels + kDepth - 1) / kDepth;
    const unsigned blocks = unsigned(s.tokens + kOwnOfBlock - 1) / kOwnOfBlock;
    unsigned at = blockIdx.x;
    part = int(at % parts) * kDepth;
    at /= parts;
    own = int(at % blocks) * kOwnOfBlock + int(threadIdx.x) / 32 * kOwn;
    at /= blocks;
    head = int(at % unsigned(s.heads));
    sample = at / unsigned(s.heads);
  }
  // q, k or v (0, 1, 2) of x, or of its gradient.
  template <class N>
  __device__ Lines<N> OfX(const AttentionSizes& s, N* x, int which) const {
    const size_t wide = size_t(s.heads) * s.channels;
    return {x + (sample * s.tokens * 3 + which) * wide + size_t(head) * s.channels, 3 * wide,
            s.tokens, s.channels};
  }
  template <class N>
  __device__ Lines<N> OfY(const AttentionSizes& s, N* y) const {
    const size_t wide = size_t(s.heads) * s.channels;
    return {y + sample * s.tokens * wide + size_t(head) * s.channels, wide, s.tokens, s.channels};
  }
  // Of a number for each token and head.
  __device__ size_t Row(const AttentionSizes& s, int token) const {
    return (sample * s.tokens + token) * s.heads + head;
  }
};
inline unsigned BlocksFor(const AttentionSizes& s) {
  const size_t parts = size_t(s.channels + kDepth - 1) / kDepth;
  const size_t blocks = size_t(s.tokens + kOwnOfBlock - 1) / kOwnOfBlock;
  return unsigned(s.samples * s.heads * blocks * parts);
}

// kRows rows of kDepth numbers in shared memory.
template <class N, int kRows>
struct Tile {
  // Eight rows, read at the same column, lie in different banks.
  static constexpr int kLine = kDepth + int(16 / sizeof(N));
  static constexpr int kPacks = kDepth / kPack<N>;  // of a row
  static_assert(kRows * kPacks % kAttentionThreads == 0);
  alignas(16) unsigned char bytes[kRows * kLine * sizeof(N)];

  __device__ N* At(int row, int column) {
    return reinterpret_cast<N*>(bytes) + row * kLine + column;
  }
  // Rows from `row` and columns from `column` on; all threads of the block call it.
  __device__ __forceinline__ void Load(const Lines<const N>& lines, int row, int column) {
    uint4 packs[kRows * kPacks / kAttentionThreads];  // all are fetched before one is written
#pragma unroll
    for (int u = 0; u < kRows * kPacks / kAttentionThreads; ++u) {
      const int i = u * kAttentionThreads + int(threadIdx.x);
      packs[u] = PackOf(lines, row + i / kPacks, column + i % kPacks * kPack<N>);
    }
#pragma unroll
    for (int u = 0; u < kRows * kPacks / kAttentionThreads; ++u) {
      const int i = u * kAttentionThreads + int(threadIdx.x);
      *reinterpret_cast<uint4*>(At(i / kPacks, i % kPacks * kPack<N>)) = packs[u];
    }
  }

 private:
  static __device__ __forceinline__ uint4 PackOf(const Lines<const N>& lines, int row, int column) {
    if (!lines.Has(row, column)) return make_uint4(0, 0, 0, 0);
    if (lines.InPacks()) return *reinterpret_cast<const uint4*>(lines.At(row, column));
    unsigned words[4];
    constexpr int kInWord = int(4 / sizeof(N));
#pragma unroll
    for (int w = 0; w < 4; ++w) words[w] = lines.Word(row, column + w * kInWord);
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
};

// ---- kinds of products: how fragments are loaded and multiplied
//   Number                      what arrays hold
//   kDeep                       rows of b, columns of a
//   LoadA(lines, row, column)   a's words of the rows from `row` on
//   LoadB<kTurned>(...)         b's words for two results beside each other: columns `n` on, rows
//                               `k` on. b is the tile's transpose or, turned, the tile itself.
//   FromSums(c)                 a's words from the sums of kDeep columns. Rows of b that a turned
//                               load gives stand in the order of these columns.
//   Add(c, a, b)                c += a b

template <class N>
struct NarrowProducts {
  using Number = N;
  static constexpr int kDeep = 16;

  static __device__ __forceinline__ void LoadA(const Lines<const N>& lines, int row, int column,
                                               unsigned (&a)[4]) {
    const int r = row + Quad(), c = column + 2 * PlaceInQuad();
    a[0] = lines.Word(r, c);
    a[1] = lines.Word(r + 8, c);
    a[2] = lines.Word(r, c + 8);
    a[3] = lines.Word(r + 8, c + 8);
  }
  template <bool kTurned, int kRows>
  static __device__ __forceinline__ void LoadB(Tile<N, kRows>& tile, int n, int k,
                                               unsigned (&b)[2][2]) {
    const int lane = int(threadIdx.x) % 32, row = lane % 8;
    const int along_k = k + lane / 8 % 2 * 8, along_n = n + lane / 16 * 8;  // where matrices begin
    unsigned words[4];
    if constexpr (kTurned) {
      LoadMatricesTurned(tile.At(along_k + row, along_n), words);
    } else {
      LoadMatrices(tile.At(along_n + row, along_k), words);
    }
    b[0][0] = words[0], b[0][1] = words[1], b[1][0] = words[2], b[1][1] = words[3];
  }
  static __device__ __forceinline__ void FromSums(const float (*c)[4], unsigned (&a)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto pair = Pair<N>::Round(c[i / 2][i % 2 * 2], c[i / 2][i % 2 * 2 + 1]);
      a[i] = *reinterpret_cast<const unsigned*>(&pair);
    }
  }
  static __device__ __forceinline__ void Add(float (&c)[4], const unsigned (&a)[4],
                                             const unsigned (&b)[2]) {
    MultiplyAdd(N(), c, a, b);
  }
};

// With kExact each number is the sum of two of tf32, and three of their four products are added:
// 22 bits of it count. Else it is rounded.
template <bool kExact>
struct FloatProductsBy {
  using Number = float;
  static constexpr int kDeep = 8;

  static __device__ __forceinline__ void LoadA(const Lines<const float>& lines, int row, int column,
                                               unsigned (&a)[4]) {
    const int r = row + Quad(), c = column + PlaceInQuad();
    a[0] = lines.Word(r, c);
    a[1] = lines.Word(r + 8, c);
    a[2] = lines.Word(r, c + 4);
    a[3] = lines.Word(r + 8, c + 4);
  }
  template <bool kTurned, int kRows>
  static __device__ __forceinline__ void LoadB(Tile<float, kRows>& tile, int n, int k,
                                               unsigned (&b)[2][2]) {
    const int quad = Quad(), place = PlaceInQuad();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int w = 0; w < 2; ++w) {
        b[i][w] = __float_as_uint(kTurned ? *tile.At(k + 2 * place + w, n + 8 * i + quad)
                                          : *tile.At(n + 8 * i + quad, k + place + 4 * w));
      }
    }
  }
  static __device__ __forceinline__ void FromSums(const float (*c)[4], unsigned (&a)[4]) {
    a[0] = __float_as_uint(c[0][0]);
    a[1] = __float_as_uint(c[0][2]);
    a[2] = __float_as_uint(c[0][1]);
    a[3] = __float_as_uint(c[0][3]);
  }
  static __device__ __forceinline__ void Add(float (&c)[4], const unsigned (&a)[4],
                                             const unsigned (&b)[2]) {
    unsigned a_high[4], a_low[4], b_high[2], b_low[2];
    Split(a, a_high, a_low);
    Split(b, b_high, b_low);
    if constexpr (kExact) {
      MultiplyAdd(float(), c, a_low, b_high);
      MultiplyAdd(float(), c, a_high, b_low);
    }
    MultiplyAdd(float(), c, a_high, b_high);
  }

 private:
  template <int kN>
  static __device__ __forceinline__ void Split(const unsigned (&from)[kN], unsigned (&high)[kN],
                                               unsigned (&low)[kN]) {
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float x = __uint_as_float(from[i]);
      high[i] = RoundToTf32(x);
      if constexpr (kExact) low[i] = RoundToTf32(x - __uint_as_float(high[i]));
    }
  }
};

// kDepth numbers of each of a warp's rows.
template <class K>
struct OwnRows {
  unsigned words[kDepth / K::kDeep][4];

  __device__ __forceinline__ void Load(const Lines<const typename K::Number>& lines, int row,
                                       int column) {
#pragma unroll
    for (int i = 0; i < kDepth / K::kDeep; ++i) {
      K::LoadA(lines, row, column + i * K::kDeep, words[i]);
    }
  }
};

// A warp's rows times those of a tile: scores[own][others] += own others^T.
template <class K, int kOthers>
__device__ __forceinline__ void AddScores(const OwnRows<K>& own,
                                          Tile<typename K::Number, kOthers>& others,
                                          float (&scores)[kOthers / 8][4]) {
#pragma unroll
  for (int i = 0; i < kDepth / K::kDeep; ++i) {
#pragma unroll
    for (int n = 0; n < kOthers; n += 16) {
      unsigned b[2][2];
      K::template LoadB<false>(others, n, i * K::kDeep, b);
      K::Add(scores[n / 8], own.words[i], b[0]);
      K::Add(scores[n / 8 + 1], own.words[i], b[1]);
    }
  }
}

// Sums of a tile's rows, each times its weight: sums[own][channels] += weights others.
template <class K, int kOthers>
__device__ __forceinline__ void AddWeighted(const float (&weights)[kOthers / 8][4],
                                            Tile<typename K::Number, kOthers>& others,
                                            float (&sums)[kDepth / 8][4]) {
#pragma unroll
  for (int k = 0; k < kOthers; k += K::kDeep) {
    unsigned a[4];
    K::FromSums(weights + k / 8, a);
#pragma unroll
    for (int n = 0; n < kDepth; n += 16) {
      unsigned b[2][2];
      K::template LoadB<true>(others, n, k, b);
      K::Add(sums[n / 8], a, b[0]);
      K::Add(sums[n / 8 + 1], a, b[1]);
    }
  }
}

// Writes a part of the channels of a warp's rows, from `part` on; `factors` has one for each of the
// thread's two rows.
template <class N>
__device__ __forceinline__ void WriteOwn(const Lines<N>& lines, int row, int part,
                                         const float (&sums)[kDepth / 8][4],
                                         const float (&factors)[2]) {
#pragma unroll
  for (int j = 0; j < kDepth / 8; ++j) {
    const int column = part + 8 * j + 2 * PlaceInQuad();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      lines.Set(row + Quad() + 8 * r, column, factors[r] * sums[j][2 * r],
                factors[r] * sums[j][2 * r + 1]);
    }
  }
}

// Calls f with a kind of products and whether all channels of a head fit, as constants.
template <class F>
void WithProducts(Element element, FloatProducts products, const AttentionSizes& sizes,
                  const F& f) {
  const auto with_depth = [&](auto kind) {
    if (sizes.channels <= kDepth) {
      f(kind, Constant<true>());
    } else {
      f(kind, Constant<false>());
    }
  };
  switch (element) {
    case Element::kBFloat:
      return with_depth(NarrowProducts<BFloat>());
    case Element::kHalf:
      return with_depth(NarrowProducts<Half>());
    default:
      if (products == FloatProducts::kTf32) return with_depth(FloatProductsBy<false>());
      return with_depth(FloatProductsBy<true>());
  }
}

}  // namespace trireme::cuda
