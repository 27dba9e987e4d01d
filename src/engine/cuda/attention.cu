// The sums behind a softmax grow with the keys (Milakov, Gimelshein 2018; Dao et al. 2022): what a
// row has seen before is scaled down where a larger score comes.
#include "engine/cuda/attention.cuh"

namespace trireme::cuda {
namespace {

constexpr int kKeys = 64;  // of a tile

// What a thread has seen of the scores of its two rows.
struct RowSums {
  float most[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};  // of exp(scale (score - most)) over this thread's keys

  // Makes the exponentials of a tile's scores, and the factors for what came before them.
  __device__ __forceinline__ void Take(float (&scores)[kKeys / 8][4], float scale,
                                       float (&factors)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float largest = most[r];
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
        largest = fmaxf(largest, fmaxf(scores[j][2 * r], scores[j][2 * r + 1]));
      }
      largest = ReduceQuad(largest, [](float a, float b) { return fmaxf(a, b); });
      factors[r] = exp2f(scale * kLog2E * (most[r] - largest));
      most[r] = largest;
      float added = 0;
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
        for (int i = 2 * r; i < 2 * r + 2; ++i) {
          scores[j][i] = exp2f(scale * kLog2E * (scores[j][i] - largest));
          added += scores[j][i];
        }
      }
      sum[r] = sum[r] * factors[r] + added;
    }
  }
};

template <class K, bool kWhole>
__global__ void __launch_bounds__(kAttentionThreads) Forward(Attention g, float scale) {
  using N = typename K::Number;
  __shared__ Tile<N, kKeys> keys, values;
  const AttentionSizes& s = g.sizes;
  const Share share(s);
  const auto* const x = static_cast<const N*>(g.x.data);
  const Lines<const N> of_queries = share.OfX(s, x, 0), of_keys = share.OfX(s, x, 1),
                       of_values = share.OfX(s, x, 2);
  const int depth = kWhole ? kDepth : s.channels;
  OwnRows<K> queries;
  if constexpr (kWhole) queries.Load(of_queries, share.own, 0);
  RowSums rows;
  float y[kDepth / 8][4] = {};
  for (int first = 0; first < s.tokens; first += kKeys) {
    float scores[kKeys / 8][4] = {};
    for (int d = 0; d < depth; d += kDepth) {
      __syncthreads();  // somebody may still read the last ones
      keys.Load(of_keys, first, d);
      if (d == 0) values.Load(of_values, first, share.part);
      __syncthreads();
      if constexpr (!kWhole) queries.Load(of_queries, share.own, d);
      if (share.own < s.tokens) AddScores<K>(queries, keys, scores);
    }
    if (share.own >= s.tokens) continue;
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (first + 8 * j + 2 * PlaceInQuad() + i % 2 >= s.tokens) scores[j][i] = -INFINITY;
      }
    }
    float factors[2];
    rows.Take(scores, scale, factors);
#pragma unroll
    for (int j = 0; j < kDepth / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) y[j][i] *= factors[i / 2];
    }
    AddWeighted<K>(scores, values, y);
  }
  if (share.own >= s.tokens) return;
  float inverse[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = SumQuad(rows.sum[r]);
    inverse[r] = 1 / sum;
    const int token = share.own + Quad() + 8 * r;
    if (share.part == 0 && PlaceInQuad() == 0 && token < s.tokens) {
      g.log_sum[share.Row(s, token)] = scale * rows.most[r] + logf(sum);
    }
  }
  WriteOwn(share.OfY(s, static_cast<N*>(g.y.data)), share.own, share.part, y, inverse);
}

}  // namespace

void LaunchAttention(cudaStream_t stream, FloatProducts products, const Attention& attention) {
  const AttentionSizes& sizes = attention.sizes;
  const float scale = float(1 / sqrt(double(sizes.channels)));
  WithProducts(attention.x.element, products, sizes, [&](auto kind, auto whole) {
    Forward<decltype(kind), whole.value>
        <<<BlocksFor(sizes), kAttentionThreads, 0, stream>>>(attention, scale);
  });
}

}  // namespace trireme::cuda
