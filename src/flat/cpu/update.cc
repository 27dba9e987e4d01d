// Update rules, each one fused pass. PyTorch's formulas; see flat/arithmetic.h.
#include "flat/cpu/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "flat/cpu/update.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "flat/cpu/lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::loops::HWY_NAMESPACE {

// How weight decay enters: not at all, as a part of the gradient, or straight at the weight.
enum class Decay { kNone, kGradient, kWeight };

// The line at p will be written: other cores (hogwild) give it up now, while other lines are at
// work. Said in assembly because compilers turn it into a read unless the instruction is promised
// to them; processors that lack it do nothing.
HWY_INLINE void PrefetchToWrite(const float* p) {
#if HWY_ARCH_X86
  asm volatile("prefetchw (%0)" : : "r"(p));
#else
  __builtin_prefetch(p, 1);
#endif
}

// Where a rule's gradients come from; they are taken in order. SGD asks for weights kAhead floats
// before it comes to them.
struct Written {
  static constexpr size_t kAhead = 0;

  const float* HWY_RESTRICT values;
  template <class D>
  HWY_INLINE hn::Vec<D> Take(D d, size_t i) {
    return hn::LoadU(d, values + i);
  }
};
class Formed {
 public:
  static constexpr size_t kAhead = 0;

  Formed(const OuterProduct& outer, size_t at)
      : down_(outer.down + at / outer.columns),
        across_(outer.across),
        columns_(outer.columns),
        column_(at % outer.columns) {}

  template <class D>
  HWY_INLINE hn::Vec<D> Take(D d, size_t) {
    auto down = hn::Set(d, *down_);
    const auto across = hn::LoadU(d, across_ + column_);
    const size_t left = columns_ - column_;
    column_ += hn::Lanes(d);
    if (left <= hn::Lanes(d)) {
      ++down_;
      column_ -= columns_;
      // The rest of the vector is of the next row.
      if (column_ > 0) down = hn::IfThenElse(hn::FirstN(d, left), down, hn::Set(d, *down_));
    }
    return hn::Mul(down, across);
  }

 private:
  const float* HWY_RESTRICT down_;
  const float* HWY_RESTRICT across_;
  size_t columns_, column_;
};

// With rows left out in between, which no processor guesses.
struct FormedHereAndThere : Formed {
  using Formed::Formed;
  static constexpr size_t kAhead = 8 * Layout::kAlignment;
};

// Calls work(source).
template <class Work>
HWY_INLINE void WithSource(const GradientsAt& g, const Work& work) {
  g.values ? work(Written{g.values}) : work(Formed(*g.outer, g.at));
}

// The gradient that a rule sees: scaled as CheckAndClip says, with the decay of i's block.
template <Decay kDecay, class D, class V, class G>
HWY_INLINE V Seen(D d, float factor, const float* decays, G& gradients, size_t i, V weight) {
  const auto scaled = hn::Mul(hn::Set(d, factor), gradients.Take(d, i));
  if constexpr (kDecay != Decay::kGradient) return scaled;
  return hn::MulAdd(hn::Set(d, decays[i / Layout::kAlignment]), weight, scaled);
}

template <Decay kDecay, bool kMomentum, bool kNesterov, class G>
void SgdLanes(const SgdRates& r, float factor, const float* HWY_RESTRICT decays, G g,
              float* HWY_RESTRICT v, float* HWY_RESTRICT w, size_t n) {
  const float rate = r.rate, momentum = r.momentum;
  EachLane(n, [=, &g](auto d, size_t i) TRIREME_INLINED {
    if constexpr (G::kAhead > 0) PrefetchToWrite(w + i + G::kAhead);
    const auto weight = hn::LoadU(d, w + i);
    auto step = Seen<kDecay>(d, factor, decays, g, i, weight);
    if constexpr (kMomentum) {
      const auto velocity = hn::MulAdd(hn::Set(d, momentum), hn::LoadU(d, v + i), step);
      hn::StoreU(velocity, d, v + i);
      step = kNesterov ? hn::MulAdd(hn::Set(d, momentum), velocity, step) : velocity;
    }
    hn::StoreU(hn::NegMulAdd(hn::Set(d, rate), step, weight), d, w + i);
  });
}

template <Decay kDecay, class G>
void SgdDecayed(const SgdRates& r, float factor, const float* decays, G g, float* v, float* w,
                size_t n) {
  if (r.momentum == 0) return SgdLanes<kDecay, false, false>(r, factor, decays, g, v, w, n);
  if (r.nesterov) return SgdLanes<kDecay, true, true>(r, factor, decays, g, v, w, n);
  SgdLanes<kDecay, true, false>(r, factor, decays, g, v, w, n);
}

// Plain SGD over whole runs of 64 bytes; one whose gradients are all zero is only looked at.
// Weights may lie in another core's cache: those of the next runs are asked for before they are
// needed.
void SgdSkippingZeros(float rate, float factor, const float* HWY_RESTRICT g, float* HWY_RESTRICT w,
                      size_t runs) {
  constexpr size_t kRun = Layout::kAlignment;
  constexpr size_t kGroup = 32;  // runs
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  // Which runs of a group are not all zero, as bits.
  const auto find = [=](size_t first) TRIREME_INLINED {
    uint32_t found = 0;
    const size_t count = HWY_MIN(kGroup, runs - HWY_MIN(first, runs));
    for (size_t r = 0; r < count; ++r) {
      const size_t i = (first + r) * kRun;
      bool zero = true;
      for (size_t j = i; j < i + kRun; j += lanes) {
        zero &= hn::AllTrue(d, hn::Eq(hn::LoadU(d, g + j), hn::Zero(d)));
      }
      if (zero) continue;
      found |= 1u << r;
      PrefetchToWrite(w + i);
    }
    return found;
  };
  uint32_t next = find(0);
  for (size_t first = 0; first < runs; first += kGroup) {
    uint32_t found = next;
    next = find(first + kGroup);
    for (; found; found &= found - 1) {
      const size_t i = (first + size_t(__builtin_ctz(found))) * kRun;
      for (size_t j = i; j < i + kRun; j += lanes) {
        const auto step = hn::Mul(hn::Set(d, factor), hn::LoadU(d, g + j));
        hn::StoreU(hn::NegMulAdd(hn::Set(d, rate), step, hn::LoadU(d, w + j)), d, w + j);
      }
    }
  }
}

// Looking for zeros costs half as much as an update: is there a chance? A few gradients tell.
bool SeemsSparse(const float* g, size_t n) {
  constexpr size_t kStride = 32 * Layout::kAlignment;
  size_t looks = 0, zeros = 0;
  for (size_t i = 0; i < n; i += kStride, ++looks) zeros += g[i] == 0;
  return 8 * zeros >= looks;
}

// The same for values [at, at + n) of an outer product: rows whose gradients are all zero are left
// alone, but for what lies in the same 64 bytes as others.
void SgdSkippingRows(const SgdRates& r, float factor, const OuterProduct& outer, size_t at,
                     float* w, size_t n) {
  constexpr size_t kRun = Layout::kAlignment;
  const size_t columns = outer.columns, last_row = (at + n - 1) / columns + 1;
  size_t done = at;
  for (size_t row = at / columns; row < last_row; ++row) {
    if (outer.down[row] == 0) continue;
    const size_t first = row;
    while (row < last_row && outer.down[row] != 0) ++row;
    const size_t begin = HWY_MAX(done, first * columns / kRun * kRun);
    const size_t end = HWY_MIN(at + n, hwy::RoundUpTo(row * columns, kRun));
    if (begin >= end) continue;
    SgdLanes<Decay::kNone, false, false>(r, factor, nullptr, FormedHereAndThere(outer, begin),
                                         nullptr, w + (begin - at), end - begin);
    done = end;  // two stretches may meet in 64 bytes
  }
}

void Sgd(const SgdRates& r, float factor, const float* decays, const GradientsAt& gradients,
         const KeptAt<SgdRates>& kept, float* w, size_t n) {
  float* const v = kept[0];
  GradientsAt g = gradients;
  if (r.skip_zeros && r.momentum == 0 && !decays) {
    if (g.outer) return SgdSkippingRows(r, factor, *g.outer, g.at, w, n);
    if (SeemsSparse(g.values, n)) {
      const size_t whole = n / Layout::kAlignment * Layout::kAlignment;
      SgdSkippingZeros(r.rate, factor, g.values, w, whole / Layout::kAlignment);
      g.values += whole;
      w += whole;
      n -= whole;
    }
  }
  WithSource(g, [&](auto source) TRIREME_INLINED {
    if (!decays) return SgdDecayed<Decay::kNone>(r, factor, decays, source, v, w, n);
    SgdDecayed<Decay::kGradient>(r, factor, decays, source, v, w, n);
  });
}

// mean = beta1 mean + (1 - beta1) g;  square = beta2 square + (1 - beta2) g^2
// weight = (1 - shrink decay) weight - rate mean / (root sqrt(square) + epsilon)
template <Decay kDecay, class G>
void AdamLanes(const AdamRates& r, float factor, const float* HWY_RESTRICT decays, G g,
               float* HWY_RESTRICT mean, float* HWY_RESTRICT square, float* HWY_RESTRICT w,
               size_t n) {
  const AdamRates k = r;
  EachLane(n, [=, &g](auto d, size_t i) TRIREME_INLINED {
    auto weight = hn::LoadU(d, w + i);
    const auto seen = Seen<kDecay>(d, factor, decays, g, i, weight);
    const auto m =
        hn::MulAdd(hn::Set(d, k.beta1), hn::LoadU(d, mean + i), hn::Mul(hn::Set(d, k.rest1), seen));
    const auto s = hn::MulAdd(hn::Set(d, k.beta2), hn::LoadU(d, square + i),
                              hn::Mul(hn::Mul(hn::Set(d, k.rest2), seen), seen));
    hn::StoreU(m, d, mean + i);
    hn::StoreU(s, d, square + i);
    const auto spread = hn::MulAdd(hn::Set(d, k.root), hn::Sqrt(s), hn::Set(d, k.epsilon));
    if constexpr (kDecay == Decay::kWeight) {
      const auto share = hn::Set(d, k.shrink * decays[i / Layout::kAlignment]);
      weight = hn::NegMulAdd(share, weight, weight);
    }
    hn::StoreU(hn::NegMulAdd(hn::Set(d, k.rate), hn::Div(m, spread), weight), d, w + i);
  });
}

void Adam(const AdamRates& r, float factor, const float* decays, const GradientsAt& gradients,
          const KeptAt<AdamRates>& kept, float* w, size_t n) {
  float *const mean = kept[0], *const square = kept[1];
  WithSource(gradients, [&](auto g) TRIREME_INLINED {
    if (!decays) return AdamLanes<Decay::kNone>(r, factor, decays, g, mean, square, w, n);
    if (!r.decoupled) return AdamLanes<Decay::kGradient>(r, factor, decays, g, mean, square, w, n);
    AdamLanes<Decay::kWeight>(r, factor, decays, g, mean, square, w, n);
  });
}

// sum += g^2;  weight -= rate g / (sqrt(sum) + epsilon)
template <Decay kDecay, class G>
void AdagradLanes(const AdagradRates& r, float factor, const float* HWY_RESTRICT decays, G g,
                  float* HWY_RESTRICT sum, float* HWY_RESTRICT w, size_t n) {
  const AdagradRates k = r;
  EachLane(n, [=, &g](auto d, size_t i) TRIREME_INLINED {
    const auto weight = hn::LoadU(d, w + i);
    const auto seen = Seen<kDecay>(d, factor, decays, g, i, weight);
    const auto s = hn::MulAdd(seen, seen, hn::LoadU(d, sum + i));
    hn::StoreU(s, d, sum + i);
    const auto spread = hn::Add(hn::Sqrt(s), hn::Set(d, k.epsilon));
    hn::StoreU(hn::NegMulAdd(hn::Set(d, k.rate), hn::Div(seen, spread), weight), d, w + i);
  });
}

void Adagrad(const AdagradRates& r, float factor, const float* decays, const GradientsAt& gradients,
             const KeptAt<AdagradRates>& kept, float* w, size_t n) {
  float* const sum = kept[0];
  WithSource(gradients, [&](auto g) TRIREME_INLINED {
    if (!decays) return AdagradLanes<Decay::kNone>(r, factor, decays, g, sum, w, n);
    AdagradLanes<Decay::kGradient>(r, factor, decays, g, sum, w, n);
  });
}

void Track(float momentum, const float* HWY_RESTRICT seen, float* HWY_RESTRICT running, size_t n) {
  EachLane(n, [=](auto d, size_t i) TRIREME_INLINED {
    const auto old = hn::LoadU(d, running + i);
    const auto way = hn::Sub(hn::LoadU(d, seen + i), old);
    hn::StoreU(hn::MulAdd(hn::Set(d, momentum), way, old), d, running + i);
  });
}

}  // namespace trireme::loops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::loops {

template <class Rates>
void Update(const Rates& r, float factor, const float* decays, const GradientsAt& gradients,
            const KeptAt<Rates>& kept, float* weight, size_t n) {
  Dispatch(r, factor, decays, gradients, kept, weight, n);
}

#define TRIREME_RULE(Loop, Rates)                                                        \
  HWY_EXPORT(Loop);                                                                      \
  void Dispatch(const Rates& r, float factor, const float* decays, const GradientsAt& g, \
                const KeptAt<Rates>& kept, float* weight, size_t n) {                    \
    HWY_DYNAMIC_DISPATCH(Loop)(r, factor, decays, g, kept, weight, n);                   \
  }                                                                                      \
  template void Update(const Rates&, float, const float*, const GradientsAt&,            \
                       const KeptAt<Rates>&, float*, size_t);
TRIREME_RULE(Sgd, SgdRates)
TRIREME_RULE(Adam, AdamRates)
TRIREME_RULE(Adagrad, AdagradRates)

HWY_EXPORT(Track);
void Track(float momentum, const float* seen, float* running, size_t n) {
  HWY_DYNAMIC_DISPATCH(Track)(momentum, seen, running, n);
}

}  // namespace trireme::loops
#endif  // HWY_ONCE
