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
#include "engine/cpu/attention_products-inl.h"
#include "engine/cpu/elementwise-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

constexpr size_t kMostKeys = 128;  // of a block of scores

struct Sizes {
  size_t T, H, D;
  float scale;
  size_t keys;  // of a block: equal ones, in whole panels

  explicit Sizes(const Call& call)
      : T(static_cast<size_t>(call.inputs[0].shape.height) *
          static_cast<size_t>(call.inputs[0].shape.width)),
        H(static_cast<size_t>(call.attributes.heads)),
        D(static_cast<size_t>(call.inputs[0].shape.channels) / (3 * H)),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(D)))),
        keys(hwy::RoundUpTo(hwy::DivCeil(T, hwy::DivCeil(T, kMostKeys)), 32)) {}

  size_t stride() const { return 3 * H * D; }                  // of q, k and v
  size_t wide() const { return hwy::RoundUpTo(D, kGroup); }    // rows of a head in scratch memory
  size_t key_blocks() const { return hwy::DivCeil(T, keys); }  // of the whole sample
  size_t keys_from(size_t first) const { return std::min(keys, T - first); }
};

// One head of one sample, as rows of D values.
template <class T>
struct Head {
  const T *q, *k, *v;
  Head(const Sizes& s, const T* x, size_t sample, size_t head)
      : q(x + sample * s.T * s.stride() + head * s.D), k(q + s.H * s.D), v(k + s.H * s.D) {}
};

// Stretches of scratch memory, one after another; null: only their length is asked for.
class Stretches {
 public:
  explicit Stretches(float* memory) : memory_(memory) {}
  template <class T = float>
  T* Take(size_t count) {
    float* taken = memory_ ? memory_ + taken_ : nullptr;
    taken_ += hwy::RoundUpTo(hwy::DivCeil(count * sizeof(T), sizeof(float)), kGroup);
    return reinterpret_cast<T*>(taken);
  }
  size_t taken() const { return taken_; }

 private:
  float* const memory_;
  size_t taken_ = 0;
};

HWY_INLINE V OnlyFirst(V v, size_t n, V others) {
  return n == kLanes ? v : hn::IfThenElse(hn::FirstN(Floats(), n), v, others);
}

// to = from * factor
template <class T>
void ScaleRow(const float* from, size_t n, float factor, T* to) {
  const V f = hn::Set(Floats(), factor);
  ForLanes(0, n, [&](size_t i, size_t m) TRIREME_INLINED {
    StoreN(hn::Mul(LoadN(from + i, m), f), to + i, m);
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

// Around what a thread does with products.
template <class Products>
class Using {
 public:
  explicit Using(const Products& products) : products_(products) { products_.Begin(); }
  ~Using() { products_.End(); }
  Using(const Using&) = delete;

 private:
  const Products& products_;
};

// ---- forward

// T: what x and y hold.
template <class Products, class T>
class ForwardTask {
 public:
  static constexpr size_t kQueries = Products::kQueries;

  ForwardTask(const Sizes& s, const Products& products, float* scratch)
      : s_(s), products_(products) {
    Stretches memory(scratch);
    keys_ = memory.Take<Packed>(s.key_blocks() * KeysSize());
    values_ = memory.Take<Packed>(s.key_blocks() * ValuesSize());
    queries_ = memory.Take<Packed>(products.TilesSize(kQueries, s.D));
    tiles_ = memory.Take<Packed>(products.TilesSize(kQueries, s.keys));
    scores_ = memory.Take(kQueries * s.keys);
    sums_ = memory.Take(kQueries * s.wide());
    floats_ = memory.taken();
  }
  size_t floats() const { return floats_; }

  void Pack(const Head<T>& head) {
    for (size_t k = 0, b = 0; k < s_.T; k += s_.keys, ++b) {
      const size_t n = s_.keys_from(k), at = k * s_.stride();
      products_.PackColumns(head.k + at, s_.stride(), n, s_.D, keys_ + b * KeysSize());
      products_.PackPanels(head.v + at, s_.stride(), n, s_.D, values_ + b * ValuesSize());
    }
  }

  // The block of queries that begins with `first`.
  void Run(const Head<T>& head, size_t first, T* y, float* log_sum) {
    const size_t count = std::min(kQueries, s_.T - first), row = s_.H * s_.D;
    products_.PackTiles(head.q + first * s_.stride(), s_.stride(), count, s_.D, queries_);
    RowSum sums[kQueries];
    for (size_t k = 0, b = 0; k < s_.T; k += s_.keys, ++b) {
      const size_t n = s_.keys_from(k);
      products_.Multiply(queries_, count, s_.D, keys_ + b * KeysSize(), n, scores_, s_.keys, false);
      for (size_t r = 0; r < count; ++r) {
        const float factor = sums[r].Take(scores_ + r * s_.keys, n, s_.scale);
        float* sum = sums_ + r * s_.wide();
        if (k > 0 && factor != 1) ScaleRow(sum, s_.D, factor, sum);
      }
      products_.PackTiles(scores_, s_.keys, count, n, tiles_);
      products_.Multiply(tiles_, count, n, values_ + b * ValuesSize(), s_.D, sums_, s_.wide(),
                         k > 0);
    }
    for (size_t r = 0; r < count; ++r) {
      ScaleRow(sums_ + r * s_.wide(), s_.D, 1 / sums[r].sum, y + (first + r) * row);
      log_sum[(first + r) * s_.H] = sums[r].most + Logarithm(sums[r].sum);
    }
  }

 private:
  using Packed = typename Products::Packed;
  size_t KeysSize() const { return products_.PanelsSize(s_.D, s_.keys); }
  size_t ValuesSize() const { return products_.PanelsSize(s_.keys, s_.D); }

  const Sizes s_;
  const Products& products_;
  Packed *keys_, *values_, *queries_, *tiles_;
  float *scores_, *sums_;
  size_t floats_;
};

// ---- backward

template <class Products, class T>
class BackwardTask {
 public:
  static constexpr size_t kQueries = Products::kQueries;

  BackwardTask(const Sizes& s, const Products& products, float* scratch)
      : s_(s), products_(products) {
    Stretches memory(scratch);
    keys_ = memory.Take<Packed>(s.key_blocks() * ColumnsSize());
    values_ = memory.Take<Packed>(s.key_blocks() * ColumnsSize());
    key_rows_ = memory.Take<Packed>(s.key_blocks() * RowsSize());
    queries_ = memory.Take<Packed>(products.TilesSize(kQueries, s.D));
    changes_ = memory.Take<Packed>(products.TilesSize(kQueries, s.D));
    query_rows_ = memory.Take<Packed>(products.PanelsSize(kQueries, s.D));
    change_rows_ = memory.Take<Packed>(products.PanelsSize(kQueries, s.D));
    tiles_ = memory.Take<Packed>(
        std::max(products.TilesSize(kQueries, s.keys), products.TurnedSize(s.keys, kQueries)));
    shares_ = memory.Take(kQueries * s.keys);
    scores_ = memory.Take(kQueries * s.keys);
    dq_ = memory.Take(kQueries * s.wide());
    dk_ = memory.Take(s.T * s.wide());
    dv_ = memory.Take(s.T * s.wide());
    floats_ = memory.taken();
  }
  size_t floats() const { return floats_; }

  // dx, y and dy begin with the head's values of the first token.
  void Run(const Head<T>& head, const T* y, const float* log_sum, const T* dy, T* dx) {
    for (size_t k = 0, b = 0; k < s_.T; k += s_.keys, ++b) {
      const size_t n = s_.keys_from(k), at = k * s_.stride();
      products_.PackColumns(head.k + at, s_.stride(), n, s_.D, keys_ + b * ColumnsSize());
      products_.PackColumns(head.v + at, s_.stride(), n, s_.D, values_ + b * ColumnsSize());
      products_.PackPanels(head.k + at, s_.stride(), n, s_.D, key_rows_ + b * RowsSize());
    }
    for (size_t q = 0; q < s_.T; q += kQueries) RunBlock(head, q, y, log_sum, dy, dx);
    for (size_t t = 0; t < s_.T; ++t) {
      T* dk = dx + t * s_.stride() + s_.H * s_.D;
      ScaleRow(dk_ + t * s_.wide(), s_.D, 1, dk);
      ScaleRow(dv_ + t * s_.wide(), s_.D, 1, dk + s_.H * s_.D);
    }
  }

 private:
  using Packed = typename Products::Packed;
  size_t ColumnsSize() const { return products_.PanelsSize(s_.D, s_.keys); }
  size_t RowsSize() const { return products_.PanelsSize(s_.keys, s_.D); }

  void RunBlock(const Head<T>& head, size_t q, const T* y, const float* log_sum, const T* dy,
                T* dx) {
    const size_t count = std::min(kQueries, s_.T - q), row = s_.H * s_.D, D = s_.D;
    const size_t stride = s_.stride(), wide = s_.wide();
    const T* from = head.q + q * stride;
    y += q * row;
    dy += q * row;
    products_.PackTiles(from, stride, count, D, queries_);
    products_.PackTiles(dy, row, count, D, changes_);
    products_.PackPanels(from, stride, count, D, query_rows_);
    products_.PackPanels(dy, row, count, D, change_rows_);
    float means[kQueries];  // of the changes of a row's shares, weighted by these
    for (size_t r = 0; r < count; ++r) means[r] = Dot(y + r * row, dy + r * row);
    for (size_t k = 0, b = 0; k < s_.T; k += s_.keys, ++b) {
      const size_t n = s_.keys_from(k), keys = s_.keys;
      products_.Multiply(queries_, count, D, keys_ + b * ColumnsSize(), n, shares_, keys, false);
      products_.Multiply(changes_, count, D, values_ + b * ColumnsSize(), n, scores_, keys, false);
      for (size_t r = 0; r < count; ++r) {
        GradRow(shares_ + r * keys, scores_ + r * keys, n, log_sum[(q + r) * s_.H], means[r]);
      }
      products_.PackTurned(shares_, keys, n, count, tiles_);
      products_.MultiplyTurned(tiles_, n, count, change_rows_, D, dv_ + k * wide, wide, q > 0);
      products_.PackTurned(scores_, keys, n, count, tiles_);
      products_.MultiplyTurned(tiles_, n, count, query_rows_, D, dk_ + k * wide, wide, q > 0);
      products_.PackTiles(scores_, keys, count, n, tiles_);
      products_.Multiply(tiles_, count, n, key_rows_ + b * RowsSize(), D, dq_, wide, k > 0);
    }
    for (size_t r = 0; r < count; ++r) ScaleRow(dq_ + r * wide, D, 1, dx + (q + r) * stride);
  }

  float Dot(const T* a, const T* b) const {
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
  const Products& products_;
  Packed *keys_, *values_, *key_rows_, *queries_, *changes_, *query_rows_, *change_rows_, *tiles_;
  float *shares_, *scores_, *dq_, *dk_, *dv_;
  size_t floats_;
};

template <class Products, class T>
void RunForward(const Call& call, const Shard& shard, const Products& products) {
  using Task = ForwardTask<Products, T>;
  const Sizes s(call);
  const T* x = call.inputs[0].as<T>();
  T* y = call.outputs[0].as<T>();
  float* log_sum = call.outputs[1].floats();
  // Each row of y is computed alike wherever the queries are divided.
  const size_t heads = shard.count * s.H, threads = static_cast<size_t>(shard.team->size());
  const size_t blocks = hwy::DivCeil(s.T, Task::kQueries);
  const size_t parts = std::clamp(hwy::DivCeil(4 * threads, heads), size_t{1}, blocks);
  const size_t own = Task(s, products, nullptr).floats();
  ParallelFor(*shard.team, heads * parts, 1, [&](size_t begin, size_t end, size_t thread) {
    const Using use(products);
    Task task(s, products, shard.scratch + thread * own);
    for (size_t i = begin; i < end; ++i) {
      const size_t sample = i / parts / s.H, h = i / parts % s.H, part = i % parts;
      const Head<T> head(s, x, sample, h);
      if (i == begin || part == 0) task.Pack(head);
      for (size_t b = blocks * part / parts; b < blocks * (part + 1) / parts; ++b) {
        task.Run(head, b * Task::kQueries, y + (sample * s.T * s.H + h) * s.D,
                 log_sum + sample * s.T * s.H + h);
      }
    }
  });
}

template <class Products, class T>
void RunBackward(const Call& call, const Shard& shard, const Products& products) {
  using Task = BackwardTask<Products, T>;
  const Sizes s(call);
  const T *x = call.inputs[0].as<T>(), *y = call.inputs[1].as<T>(), *dy = call.inputs[3].as<T>();
  const float* log_sum = call.inputs[2].floats();
  T* dx = call.outputs[0].as<T>();
  const size_t own = Task(s, products, nullptr).floats();
  ParallelFor(*shard.team, shard.count * s.H, 1, [&](size_t begin, size_t end, size_t thread) {
    const Using use(products);
    Task task(s, products, shard.scratch + thread * own);
    for (size_t i = begin; i < end; ++i) {
      const size_t sample = i / s.H, h = i % s.H, first = (sample * s.T * s.H + h) * s.D;
      task.Run(Head<T>(s, x, sample, h), y + first, log_sum + sample * s.T * s.H + h, dy + first,
               dx + sample * s.T * s.stride() + h * s.D);
    }
  });
}

}  // namespace

size_t AttentionScratch(const Call& call, size_t, size_t threads) {
  const Sizes s(call);
  if (!call.unit) return threads * ForwardTask<FloatProducts, float>(s, {}, nullptr).floats();
  const UnitProducts products(*call.unit);
  return threads * ForwardTask<UnitProducts, float>(s, products, nullptr).floats();
}

void Attention(const Call& call, const Shard& shard) {
  if (!call.unit) return RunForward<FloatProducts, float>(call, shard, {});
  WithElement(call.outputs[0], [&](auto element) {
    RunForward<UnitProducts, decltype(element)>(call, shard, UnitProducts(*call.unit));
  });
}

size_t AttentionGradScratch(const Call& call, size_t, size_t threads) {
  const Sizes s(call);
  if (!call.unit) return threads * BackwardTask<FloatProducts, float>(s, {}, nullptr).floats();
  const UnitProducts products(*call.unit);
  return threads * BackwardTask<UnitProducts, float>(s, products, nullptr).floats();
}

void AttentionGrad(const Call& call, const Shard& shard) {
  if (!call.unit) return RunBackward<FloatProducts, float>(call, shard, {});
  WithElement(call.outputs[0], [&](auto element) {
    RunBackward<UnitProducts, decltype(element)>(call, shard, UnitProducts(*call.unit));
  });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
