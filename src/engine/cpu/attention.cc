// attention: softmax(q k^T / sqrt(D)) v, head by head, a block of queries with a block of keys at a
// time. Only such blocks of the square of scores are ever held; the sums behind a softmax grow with
// the keys (Milakov, Gimelshein 2018; Dao et al. 2022), and backward computes the blocks again.
//   T tokens, H heads of D channels; x is [T][3][H][D] with q, k and v, y [T][H][D], log_sum [T][H]
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/team.h"
#include "engine/cpu/call.h"
#include "engine/cpu/logarithm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "engine/cpu/pack-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

// Queries and keys of a block of scores, in whole tiles and panels.
constexpr size_t kBlockTiles = 4, kQueries = kBlockTiles * kTileRows;
constexpr size_t kKeys = 64;
static_assert(kKeys % kTileColumns == 0 && kKeys % kGroup == 0);

struct Sizes {
  size_t T, H, D;
  float scale;

  explicit Sizes(const Call& call)
      : T(static_cast<size_t>(call.inputs[0].shape.height) *
          static_cast<size_t>(call.inputs[0].shape.width)),
        H(static_cast<size_t>(call.attributes.heads)),
        D(static_cast<size_t>(call.inputs[0].shape.channels) / (3 * H)),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(D)))) {}

  size_t stride() const { return 3 * H * D; }                            // of q, k and v
  size_t blocks() const { return hwy::DivCeil(T, kQueries); }            // of queries
  size_t wide() const { return hwy::RoundUpTo(D, kLanes); }              // rows of a head in panels
  size_t tile() const { return kTileRows * hwy::RoundUpTo(D, kGroup); }  // of rows of a head
};

// One head of one sample, as rows of D values.
struct Head {
  const float *q, *k, *v;
  Head(const Sizes& s, const float* x, size_t sample, size_t head)
      : q(x + sample * s.T * s.stride() + head * s.D), k(q + s.H * s.D), v(k + s.H * s.D) {}
};

// Stretches of scratch memory, one after another; null: only their length is asked for.
class Stretches {
 public:
  explicit Stretches(float* memory) : memory_(memory) {}
  float* Take(size_t floats) {
    float* taken = memory_ ? memory_ + taken_ : nullptr;
    taken_ += hwy::RoundUpTo(floats, kGroup);
    return taken;
  }
  size_t taken() const { return taken_; }

 private:
  float* const memory_;
  size_t taken_ = 0;
};

// Rows of a matrix as tiles by row, `depth` deep.
void PackTiles(const float* from, size_t stride, size_t rows, size_t depth, float* tiles) {
  const size_t floats = kTileRows * hwy::RoundUpTo(depth, kGroup);
  for (size_t r = 0; r < rows; r += kTileRows, tiles += floats) {
    PackMatrix(from + r * stride, stride, std::min(kTileRows, rows - r), depth, tiles);
  }
}

// Rows of a matrix as panels that are as deep as there are rows.
void PackRows(const float* from, size_t stride, size_t rows, size_t columns, float* panels) {
  for (size_t at = 0; at < columns; at += kTileColumns) {
    const size_t width = PanelWidth(at / kTileColumns, columns);
    for (size_t k = 0; k < rows; ++k) {
      for (size_t v = 0; v < width; v += kLanes) {
        const size_t n = std::min(kLanes, columns - at - v);
        StoreAll(LoadN(from + k * stride + at + v, n), panels + at * rows + k * width + v);
      }
    }
  }
}

// Rows of a matrix as columns of panels that are as deep as rows are long.
void PackColumns(const float* from, size_t stride, size_t rows, size_t depth, float* panels) {
  for (size_t at = 0; at < rows; at += kTileColumns, panels += kTileColumns * depth) {
    const size_t width = PanelWidth(at / kTileColumns, rows), valid = std::min(width, rows - at);
    Transpose(from + at * stride, stride, valid, depth, panels, width);
    for (size_t k = 0; valid < width && k < depth; ++k) {
      ZeroFloats(width - valid, panels + k * width + valid);
    }
  }
}

// c (+)= a * b: rows of c from tiles of a by row or, with kByDepth, by depth, and panels of b.
template <Order kOrder>
void Multiply(const float* tiles, size_t tile_floats, size_t rows, size_t depth,
              const float* panels, size_t columns, float* c, size_t stride, bool add) {
  for (size_t r = 0; r < rows; r += kTileRows, tiles += tile_floats) {
    const size_t count = std::min(kTileRows, rows - r);
    float* targets[kTileRows];
    for (size_t i = 0; i < count; ++i) targets[i] = c + (r + i) * stride;
    for (size_t at = 0; at < columns; at += kTileColumns) {
      const size_t width = PanelWidth(at / kTileColumns, columns);
      const Into into = {.rows = targets,
                         .first = at,
                         .columns = std::min(width, columns - at),
                         .add = add,
                         .bias = nullptr,
                         .relu = false};
      ChooseTile<kOrder>(count, width / kLanes)(depth, tiles, panels + at * depth, into);
    }
  }
}

void MultiplyRows(const float* tiles, size_t rows, size_t depth, const float* panels,
                  size_t columns, float* c, size_t stride, bool add) {
  Multiply<Order::kByRow>(tiles, kTileRows * hwy::RoundUpTo(depth, kGroup), rows, depth, panels,
                          columns, c, stride, add);
}

// c[keys][columns] (+)= transposed scores[queries][keys] * panels, `tiles` being memory for them.
void MultiplyKeys(const float* scores, size_t queries, size_t keys, float* tiles,
                  const float* panels, size_t columns, float* c, size_t stride, bool add) {
  const size_t floats = queries * kWeightGroup;
  for (size_t r = 0; r < keys; r += kTileRows) {
    float* to = tiles + r / kTileRows * floats;
    const size_t count = std::min(kTileRows, keys - r);
    for (size_t k = 0; k < queries; ++k) {
      CopyFloats(scores + k * kKeys + r, count, to + k * kWeightGroup);
    }
  }
  Multiply<Order::kByDepth>(tiles, floats, keys, queries, panels, columns, c, stride, add);
}

HWY_INLINE V OnlyFirst(V v, size_t n, V others) {
  return n == kLanes ? v : hn::IfThenElse(hn::FirstN(Floats(), n), v, others);
}

void ScaleRow(float* row, size_t n, float factor) {
  const V f = hn::Set(Floats(), factor);
  ForLanes(0, n, [&](size_t i, size_t m) TRIREME_INLINED {
    StoreN(hn::Mul(LoadN(row + i, m), f), row + i, m);
  });
}

// What a row's softmax has seen so far.
struct RowSum {
  float most = std::numeric_limits<float>::lowest();  // the largest scaled score
  float sum = 0;                                      // of exp(score - most)

  // Makes exp(score - most) of n more scores and returns the factor for what came before them.
  float Take(float* scores, size_t n, float scale) {
    const Floats d;
    const V least = hn::Set(d, std::numeric_limits<float>::lowest());
    V largest = least;
    ForLanes(0, n, [&](size_t i, size_t m) TRIREME_INLINED {
      largest = hn::Max(largest, OnlyFirst(LoadN(scores + i, m), m, least));
    });
    const float before = most;
    most = std::max(most, scale * Largest(largest));
    const V s = hn::Set(d, scale), top = hn::Set(d, most);
    V added = hn::Zero(d);
    ForLanes(0, n, [&](size_t i, size_t m) TRIREME_INLINED {
      const V share = Exponential(hn::MulSub(LoadN(scores + i, m), s, top));
      StoreN(share, scores + i, m);
      added = hn::Add(added, OnlyFirst(share, m, hn::Zero(d)));
    });
    const float factor = hn::GetLane(hn::Exp(d, hn::Set(d, before - most)));
    sum = sum * factor + Sum(added);
    return factor;
  }
};

// ---- forward

class ForwardTask {
 public:
  ForwardTask(const Sizes& s, float* scratch) : s_(s) {
    Stretches memory(scratch);
    keys_ = memory.Take(PanelFloats(s.D, s.T));
    values_ = memory.Take(s.T * s.wide());
    queries_ = memory.Take(kBlockTiles * s.tile());
    scores_ = memory.Take(kQueries * kKeys);
    tiles_ = memory.Take(kQueries * kKeys);
    floats_ = memory.taken();
  }
  size_t floats() const { return floats_; }

  void Pack(const Head& head) {
    PackColumns(head.k, s_.stride(), s_.T, s_.D, keys_);
    for (size_t k = 0; k < s_.T; k += kKeys) {
      PackRows(head.v + k * s_.stride(), s_.stride(), std::min(kKeys, s_.T - k), s_.D,
               values_ + k * s_.wide());
    }
  }

  // The block of queries that begins with `first`.
  void Run(const Head& head, size_t first, float* y, float* log_sum) {
    const size_t count = std::min(kQueries, s_.T - first), row = s_.H * s_.D;
    PackTiles(head.q + first * s_.stride(), s_.stride(), count, s_.D, queries_);
    y += first * row;
    RowSum sums[kQueries];
    for (size_t k = 0; k < s_.T; k += kKeys) {
      const size_t n = std::min(kKeys, s_.T - k);
      MultiplyRows(queries_, count, s_.D, keys_ + k * s_.D, n, scores_, kKeys, false);
      for (size_t r = 0; r < count; ++r) {
        const float factor = sums[r].Take(scores_ + r * kKeys, n, s_.scale);
        if (k > 0 && factor != 1) ScaleRow(y + r * row, s_.D, factor);
      }
      PackTiles(scores_, kKeys, count, n, tiles_);
      MultiplyRows(tiles_, count, n, values_ + k * s_.wide(), s_.D, y, row, k > 0);
    }
    for (size_t r = 0; r < count; ++r) {
      ScaleRow(y + r * row, s_.D, 1 / sums[r].sum);
      log_sum[(first + r) * s_.H] = sums[r].most + Logarithm(sums[r].sum);
    }
  }

 private:
  const Sizes s_;
  float *keys_, *values_, *queries_, *scores_, *tiles_;
  size_t floats_;
};

// ---- backward

class BackwardTask {
 public:
  BackwardTask(const Sizes& s, float* scratch) : s_(s) {
    Stretches memory(scratch);
    keys_ = memory.Take(PanelFloats(s.D, s.T));
    values_ = memory.Take(PanelFloats(s.D, s.T));
    key_rows_ = memory.Take(s.T * s.wide());
    queries_ = memory.Take(kBlockTiles * s.tile());
    changes_ = memory.Take(kBlockTiles * s.tile());
    query_rows_ = memory.Take(kQueries * s.wide());
    change_rows_ = memory.Take(kQueries * s.wide());
    shares_ = memory.Take(kQueries * kKeys);
    scores_ = memory.Take(kQueries * kKeys);
    tiles_ = memory.Take(
        std::max(kQueries * kKeys, hwy::DivCeil(kKeys, kTileRows) * kQueries * kWeightGroup));
    floats_ = memory.taken();
  }
  size_t floats() const { return floats_; }

  // dx, y and dy begin with the head's values of the first token.
  void Run(const Head& head, const float* y, const float* log_sum, const float* dy, float* dx) {
    PackColumns(head.k, s_.stride(), s_.T, s_.D, keys_);
    PackColumns(head.v, s_.stride(), s_.T, s_.D, values_);
    for (size_t k = 0; k < s_.T; k += kKeys) {
      PackRows(head.k + k * s_.stride(), s_.stride(), std::min(kKeys, s_.T - k), s_.D,
               key_rows_ + k * s_.wide());
    }
    for (size_t q = 0; q < s_.T; q += kQueries) RunBlock(head, q, y, log_sum, dy, dx);
  }

 private:
  void RunBlock(const Head& head, size_t q, const float* y, const float* log_sum, const float* dy,
                float* dx) {
    const size_t count = std::min(kQueries, s_.T - q), row = s_.H * s_.D, D = s_.D;
    const size_t stride = s_.stride();
    const float* from = head.q + q * stride;
    y += q * row;
    dy += q * row;
    PackTiles(from, stride, count, D, queries_);
    PackTiles(dy, row, count, D, changes_);
    PackRows(from, stride, count, D, query_rows_);
    PackRows(dy, row, count, D, change_rows_);
    float means[kQueries];  // of the changes of a row's shares, weighted by these
    for (size_t r = 0; r < count; ++r) means[r] = Dot(y + r * row, dy + r * row);
    for (size_t k = 0; k < s_.T; k += kKeys) {
      const size_t n = std::min(kKeys, s_.T - k);
      MultiplyRows(queries_, count, D, keys_ + k * D, n, shares_, kKeys, false);
      MultiplyRows(changes_, count, D, values_ + k * D, n, scores_, kKeys, false);
      for (size_t r = 0; r < count; ++r) {
        GradRow(shares_ + r * kKeys, scores_ + r * kKeys, n, log_sum[(q + r) * s_.H], means[r]);
      }
      float* dk = dx + s_.H * D + k * stride;
      MultiplyKeys(shares_, count, n, tiles_, change_rows_, D, dk + s_.H * D, stride, q > 0);
      MultiplyKeys(scores_, count, n, tiles_, query_rows_, D, dk, stride, q > 0);
      PackTiles(scores_, kKeys, count, n, tiles_);
      MultiplyRows(tiles_, count, n, key_rows_ + k * s_.wide(), D, dx + q * stride, stride, k > 0);
    }
  }

  float Dot(const float* a, const float* b) const {
    V sum = hn::Zero(Floats());
    ForLanes(0, s_.D, [&](size_t i, size_t n) TRIREME_INLINED {
      sum = hn::MulAdd(LoadN(a + i, n), LoadN(b + i, n), sum);
    });
    return Sum(sum);
  }

  // Scores become shares; changes of shares become changes of scores.
  void GradRow(float* scores, float* changes, size_t n, float log_sum, float mean) const {
    const Floats d;
    const V scale = hn::Set(d, s_.scale), top = hn::Set(d, log_sum), level = hn::Set(d, mean);
    ForLanes(0, n, [&](size_t i, size_t m) TRIREME_INLINED {
      const V share = Exponential(hn::MulSub(LoadN(scores + i, m), scale, top));
      StoreN(share, scores + i, m);
      const V off = hn::Sub(LoadN(changes + i, m), level);
      StoreN(hn::Mul(hn::Mul(share, scale), off), changes + i, m);
    });
  }

  const Sizes s_;
  float *keys_, *values_, *key_rows_, *queries_, *changes_, *query_rows_, *change_rows_, *shares_,
      *scores_, *tiles_;
  size_t floats_;
};

}  // namespace

size_t AttentionScratch(const Call& call, size_t, size_t threads) {
  return threads * ForwardTask(Sizes(call), nullptr).floats();
}

void Attention(const Call& call, const Shard& shard) {
  const Sizes s(call);
  const float* x = call.inputs[0].floats();
  float *y = call.outputs[0].floats(), *log_sum = call.outputs[1].floats();
  // Each row of y is computed alike wherever the queries are divided.
  const size_t heads = shard.count * s.H, threads = static_cast<size_t>(shard.team->size());
  const size_t parts = std::clamp(hwy::DivCeil(4 * threads, heads), size_t{1}, s.blocks());
  const size_t own = ForwardTask(s, nullptr).floats();
  ParallelFor(*shard.team, heads * parts, 1, [&](size_t begin, size_t end, size_t thread) {
    ForwardTask task(s, shard.scratch + thread * own);
    for (size_t i = begin; i < end; ++i) {
      const size_t sample = i / parts / s.H, h = i / parts % s.H, part = i % parts;
      const Head head(s, x, sample, h);
      if (i == begin || part == 0) task.Pack(head);
      for (size_t b = s.blocks() * part / parts; b < s.blocks() * (part + 1) / parts; ++b) {
        task.Run(head, b * kQueries, y + (sample * s.T * s.H + h) * s.D,
                 log_sum + sample * s.T * s.H + h);
      }
    }
  });
}

size_t AttentionGradScratch(const Call& call, size_t, size_t threads) {
  return threads * BackwardTask(Sizes(call), nullptr).floats();
}

void AttentionGrad(const Call& call, const Shard& shard) {
  const Sizes s(call);
  const float *x = call.inputs[0].floats(), *y = call.inputs[1].floats();
  const float *log_sum = call.inputs[2].floats(), *dy = call.inputs[3].floats();
  float* dx = call.outputs[0].floats();
  const size_t own = BackwardTask(s, nullptr).floats();
  ParallelFor(*shard.team, shard.count * s.H, 1, [&](size_t begin, size_t end, size_t thread) {
    BackwardTask task(s, shard.scratch + thread * own);
    for (size_t i = begin; i < end; ++i) {
      const size_t sample = i / s.H, h = i % s.H, first = (sample * s.T * s.H + h) * s.D;
      task.Run(Head(s, x, sample, h), y + first, log_sum + sample * s.T * s.H + h, dy + first,
               dx + sample * s.T * s.stride() + h * s.D);
    }
  });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
