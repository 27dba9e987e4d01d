// Scores are computed again, and with log_sum their shares. A block has rows of which all sums are
// its own, so that they have one order: first blocks of queries make dq, then blocks of keys make
// dk and dv.
#include "engine/cuda/attention.cuh"

namespace trireme::cuda {
namespace {

constexpr int kOthers = 32;  // rows of a tile

// Of the rows that a thread has, or of those of a tile: what its scores' shares follow from.
template <int kRows>
struct Measures {
  float log_sum[kRows];  // times log2(e)
  float mean[kRows];     // of the changes of a row's shares, weighted by these: dy y

  // Rows outside have no share.
  __device__ void Set(int i, bool inside, float of_log_sum, float of_mean) {
    log_sum[i] = inside ? kLog2E * of_log_sum : INFINITY;
    mean[i] = inside ? of_mean : 0;
  }
};

// The product of a row of dy and of y, for all threads of its quad.
template <class N>
__device__ __forceinline__ float Dot(const Lines<const N>& a, const Lines<const N>& b, int row) {
  constexpr int kInWord = int(4 / sizeof(N));
  float sum = 0;
  for (int c = kInWord * PlaceInQuad(); c < a.columns; c += 4 * kInWord) {
    const unsigned one = a.Word(row, c), other = b.Word(row, c);
    if constexpr (sizeof(N) == 4) {
      sum = fmaf(__uint_as_float(one), __uint_as_float(other), sum);
    } else {
      const float2 of_a = Pair<N>::Widen(one), of_b = Pair<N>::Widen(other);
      sum = fmaf(of_a.x, of_b.x, fmaf(of_a.y, of_b.y, sum));
    }
  }
  return SumQuad(sum);
}

// Own rows are queries with dy, others keys with values, or with kOfKeys the other way round.
template <class K, bool kWhole, bool kOfKeys>
__global__ void __launch_bounds__(kAttentionThreads) Backward(AttentionGrad g, float scale) {
  using N = typename K::Number;
  __shared__ Tile<N, kOthers> tile, second_tile;
  __shared__ Measures<kOthers> of_tile;
  const AttentionSizes& s = g.sizes;
  const Share share(s);
  const auto* const x = static_cast<const N*>(g.x.data);
  const auto* const dy = static_cast<const N*>(g.dy.data);
  const Lines<const N> of_queries = share.OfX(s, x, 0), of_keys = share.OfX(s, x, 1),
                       of_values = share.OfX(s, x, 2), of_dy = share.OfY(s, dy);
  const Lines<const N> of_own = kOfKeys ? of_keys : of_queries,
                       of_second = kOfKeys ? of_values : of_dy;
  const Lines<const N> others = kOfKeys ? of_queries : of_keys,
                       second_others = kOfKeys ? of_dy : of_values;
  const int depth = kWhole ? kDepth : s.channels;
  OwnRows<K> own, second;
  if constexpr (kWhole) {
    own.Load(of_own, share.own, 0);
    second.Load(of_second, share.own, 0);
  }
  Measures<2> of_rows;
  if constexpr (!kOfKeys) {
    const Lines<const N> of_y = share.OfY(s, static_cast<const N*>(g.y.data));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int token = share.own + Quad() + 8 * r;
      const float mean = Dot(of_dy, of_y, token);
      const bool inside = token < s.tokens;
      of_rows.Set(r, inside, inside ? g.log_sum[share.Row(s, token)] : 0, mean);
      if (inside && share.part == 0 && PlaceInQuad() == 0) g.means[share.Row(s, token)] = mean;
    }
  }
  float sums[kDepth / 8][4] = {}, second_sums[kDepth / 8][4] = {};
  for (int first = 0; first < s.tokens; first += kOthers) {
    float shares[kOthers / 8][4] = {}, changes[kOthers / 8][4] = {};
    for (int d = 0; d < depth; d += kDepth) {
      __syncthreads();  // somebody may still read the last ones
      tile.Load(others, first, d);
      second_tile.Load(second_others, first, d);
      if (kOfKeys && d == 0 && threadIdx.x < kOthers) {
        const int i = int(threadIdx.x), token = first + i;
        const bool inside = token < s.tokens;
        const size_t at = inside ? share.Row(s, token) : 0;
        of_tile.Set(i, inside, inside ? g.log_sum[at] : 0, inside ? g.means[at] : 0);
      }
      __syncthreads();
      if constexpr (!kWhole) {
        own.Load(of_own, share.own, d);
        second.Load(of_second, share.own, d);
      }
      if (share.own >= s.tokens) continue;
      AddScores<K>(own, tile, shares);
      AddScores<K>(second, second_tile, changes);
    }
    if constexpr (!kWhole) {
      __syncthreads();
      tile.Load(others, first, share.part);
      second_tile.Load(second_others, first, share.part);
      __syncthreads();
    }
    if (share.own >= s.tokens) continue;
#pragma unroll
    for (int j = 0; j < kOthers / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int other = 8 * j + 2 * PlaceInQuad() + i % 2;
        const float log_sum = kOfKeys ? of_tile.log_sum[other] : of_rows.log_sum[i / 2];
        const float mean = kOfKeys ? of_tile.mean[other] : of_rows.mean[i / 2];
        const float part = exp2f(fmaf(shares[j][i], scale * kLog2E, -log_sum));
        shares[j][i] = first + other < s.tokens ? part : 0;
        changes[j][i] = shares[j][i] * (changes[j][i] - mean);
      }
    }
    AddWeighted<K>(changes, tile, sums);
    if constexpr (kOfKeys) AddWeighted<K>(shares, second_tile, second_sums);
  }
  if (share.own >= s.tokens) return;
  auto* const dx = static_cast<N*>(g.dx.data);
  WriteOwn(share.OfX(s, dx, kOfKeys ? 1 : 0), share.own, share.part, sums, {scale, scale});
  if constexpr (kOfKeys) {
    WriteOwn(share.OfX(s, dx, 2), share.own, share.part, second_sums, {1.0f, 1.0f});
  }
}

}  // namespace

void LaunchAttentionGrad(cudaStream_t stream, FloatProducts products, const AttentionGrad& grad) {
  const AttentionSizes& sizes = grad.sizes;
  const float scale = float(1 / sqrt(double(sizes.channels)));
  WithProducts(grad.x.element, products, sizes, [&](auto kind, auto whole) {
    using K = decltype(kind);
    constexpr bool kWhole = whole.value;
    const unsigned blocks = BlocksFor(sizes);
    Backward<K, kWhole, false><<<blocks, kAttentionThreads, 0, stream>>>(grad, scale);
    Backward<K, kWhole, true><<<blocks, kAttentionThreads, 0, stream>>>(grad, scale);
  });
}

}  // namespace trireme::cuda
