#include "flat/table_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "base/random.h"
#include "flat/arithmetic.h"
#include "flat/digest.h"
#include "flat/staging.h"

namespace trireme {
namespace {

using Floats = std::vector<float>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// A device, a queue and a row of slices with guards of a known value before and behind each.
class Bench {
 public:
  Bench(Device& device, size_t n, size_t offset, uint64_t seed)
      : device_(device), queue_(device.NewQueue()), n_(n), offset_(offset), random_(seed) {}
  ~Bench() { queue_->Sync(); }

  Queue& queue() { return *queue_; }
  size_t n() const { return n_; }

  Floats Draw(double low = -1, double high = 1) {
    Floats x(n_);
    for (float& v : x) v = float(low + (high - low) * random_.Uniform(drawn_++));
    return x;
  }
  Slice Load(const Floats& x) {
    kept_.emplace_back(device_, offset_ + x.size() + kBehind);
    const Slice whole = kept_.back();
    flat::Fill(*queue_, kFence, whole);
    const Slice slice = whole.Sub(offset_, x.size());
    flat::PutNow(*queue_, x, slice);
    return slice;
  }
  Floats Read(Slice slice) {
    Floats x(slice.size);
    flat::GetNow(*queue_, slice, x);
    return x;
  }
  Slice Scale(float factor, float skipped = 0) { return Load({factor, skipped, 0, 0, 0}); }

  // Nothing was written outside the slices.
  void CheckFences() {
    for (const Buffer& buffer : kept_) {
      const Floats x = Read(buffer);
      for (size_t i = 0; i < offset_; ++i) ASSERT_EQ(x[i], kFence) << "before a slice";
      for (size_t i = x.size() - kBehind; i < x.size(); ++i) ASSERT_EQ(x[i], kFence) << "behind";
    }
  }

 private:
  static constexpr float kFence = 77;
  static constexpr size_t kBehind = 19;
  Device& device_;
  std::unique_ptr<Queue> queue_;
  const size_t n_, offset_;
  const Random random_;
  uint64_t drawn_ = 0;
  std::vector<Buffer> kept_;
};

void ExpectNear(const Floats& got, const std::function<double(size_t)>& want, const char* what,
                double tolerance = 1e-6) {
  for (size_t i = 0; i < got.size(); ++i) {
    const double w = want(i);
    ASSERT_NEAR(got[i], w, tolerance * (1 + std::fabs(w))) << what << " at " << i;
  }
}

void CheckMoves(Bench& bench) {
  const Floats x = bench.Draw(), y = bench.Draw();
  const Slice a = bench.Load(x), b = bench.Load(y);
  EXPECT_EQ(bench.Read(a), x) << "put, get";
  flat::Copy(bench.queue(), a, b);
  EXPECT_EQ(bench.Read(b), x) << "copy";
  flat::Fill(bench.queue(), -0.5f, b);
  EXPECT_EQ(bench.Read(b), Floats(bench.n(), -0.5f)) << "fill";
}

void CheckSums(Bench& bench) {
  const Floats x = bench.Draw(), y = bench.Draw();
  const Slice a = bench.Load(x), b = bench.Load(y);
  flat::Add(bench.queue(), a, b);
  Floats sum(bench.n());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = y[i] + x[i];
  EXPECT_EQ(bench.Read(b), sum) << "add";

  const Slice c = bench.Load(y);
  flat::Blend(bench.queue(), 0.3f, a, -0.7f, c);
  ExpectNear(
      bench.Read(c), [&](size_t i) { return 0.3 * x[i] - 0.7 * y[i]; }, "blend");

  const Slice d = bench.Load(y);
  flat::Axpy(bench.queue(), -1.5f, a, d);
  ExpectNear(
      bench.Read(d), [&](size_t i) { return y[i] - 1.5 * x[i]; }, "axpy");
  flat::Scale(bench.queue(), 0.3f, d);
  ExpectNear(
      bench.Read(d), [&](size_t i) { return 0.3 * (y[i] - 1.5 * x[i]); }, "scale");

  const Slice w = bench.Load(x), centre = bench.Load(y), pull = bench.Load(bench.Draw());
  flat::ElasticPull(bench.queue(), 0.25f, centre, w, pull);
  ExpectNear(
      bench.Read(pull), [&](size_t i) { return 0.25 * (double(x[i]) - y[i]); }, "pull");
  ExpectNear(
      bench.Read(w), [&](size_t i) { return x[i] - 0.25 * (double(x[i]) - y[i]); }, "pulled");
}

// Products that overflow a float, and zeros in between.
void CheckDot(Bench& bench) {
  const auto dot = [&](const Slice& a, const Slice& b) {
    const Buffer out(*a.device, flat::kDoubleFloats);
    flat::Dot(bench.queue(), a, b, out);
    const Floats bits = bench.Read(out);
    double got;
    std::memcpy(&got, bits.data(), sizeof(got));
    return got;
  };
  Floats x = bench.Draw(), y = bench.Draw();
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 3 == 1) x[i] *= 1e30f;
    if (i % 3 == 1) y[i] *= 1e20f;
    if (i % 5 == 2) y[i] = 0;
  }
  double want = 0, size = 0, square = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    want += double(x[i]) * y[i];
    size += std::fabs(double(x[i]) * y[i]);
    square += double(x[i]) * x[i];
  }
  const Slice a = bench.Load(x), b = bench.Load(y);
  EXPECT_NEAR(dot(a, b), want, 1e-12 * size) << "dot";
  EXPECT_NEAR(dot(a, a), square, 1e-12 * square) << "dot with itself";
  EXPECT_EQ(dot(a, b), dot(a, b)) << "the same bits again";
}

// Values of very different size: any other order of additions gives other bits.
void CheckSumInOrder(Bench& bench) {
  for (size_t parts : {0, 1, 3, 16, 17, 35}) {
    const Floats start = bench.Draw();
    Floats want = start;
    std::vector<Slice> slices;
    for (size_t p = 0; p < parts; ++p) {
      Floats part = bench.Draw();
      for (size_t i = 0; i < part.size(); ++i) {
        part[i] *= (p + i) % 3 == 0 ? 1e6f : 1;
        want[i] += part[i];
      }
      slices.push_back(bench.Load(part));
    }
    const Slice from = bench.Load(start), out = bench.Load(bench.Draw());
    flat::SumInOrder(bench.queue(), from, slices, out);
    EXPECT_EQ(bench.Read(out), want) << "sum of " << parts;
    EXPECT_EQ(bench.Read(from), start) << "the sum wrote its start";
    flat::SumInOrder(bench.queue(), from, slices, from);
    EXPECT_EQ(bench.Read(from), want) << "sum in place of " << parts;
  }
}

void CheckClipFactor(Bench& bench) {
  const auto judge = [&](const Floats& g, const Floats& s, float clip) {
    const Slice scale = bench.Scale(-1, 5);
    flat::CheckAndClip(bench.queue(), bench.Load(g), bench.Load(s), clip, {}, scale);
    const Floats got = bench.Read(scale);
    EXPECT_EQ(got[UpdateScale::kSkipped], got[UpdateScale::kFactor] == 0 ? 6 : 5);
    return got[UpdateScale::kFactor];
  };
  const Floats g = bench.Draw(), s = {0.5f, 2};
  double squares = 0;
  for (float v : g) squares += double(v) * v;
  const double norm = std::sqrt(squares);
  EXPECT_EQ(judge(g, s, 0), 1);
  EXPECT_EQ(judge(g, s, float(norm * 1.01 + 1e-3)), 1);
  if (bench.n() == 0) return;
  const float clip = float(0.4 * norm);
  EXPECT_NEAR(judge(g, s, clip), clip / norm, 1e-6);

  const float huge = 3e38f;  // finite, though its square is not a float
  const Floats large(bench.n(), huge);
  EXPECT_EQ(judge(large, s, 0), 1);
  EXPECT_NEAR(judge(large, s, 3e37f) * huge * std::sqrt(double(bench.n())) / 3e37, 1, 1e-5);
  EXPECT_EQ(judge(Floats(bench.n(), 1e-30f), s, 1), 1);
  EXPECT_EQ(judge(g, {0, kInf}, 0), 0) << "a statistic that is not finite";
  EXPECT_EQ(judge(g, {kNan, 0}, 1), 0);
}

// The loss scale: gradients are that much too large, an overflow makes it smaller, and updates
// without one larger.
void CheckLossScale(Bench& bench) {
  const LossScaling loss{.growth = 4, .backoff = 0.25f, .interval = 2};
  const Slice good = bench.Load(bench.Draw()), statistics = bench.Load({0.5f});
  const Slice bad = bench.Load({kInf});
  const Slice scale = bench.Load({-1, 5, 1024, -1, 0});
  const auto judge = [&](Slice seen, float clip = 0, bool unscales = true) {
    LossScaling by = loss;
    by.unscales = unscales;
    flat::CheckAndClip(bench.queue(), good, seen, clip, by, scale);
    return bench.Read(scale);
  };
  const float inverse = 1 / 1024.0f;
  EXPECT_EQ(judge(statistics), (Floats{inverse, 5, 1024, inverse, 1}));
  EXPECT_EQ(judge(statistics), (Floats{inverse, 5, 4096, inverse, 0})) << "it grows";
  EXPECT_EQ(judge(statistics), (Floats{inverse / 4, 5, 4096, inverse / 4, 1}));
  EXPECT_EQ(judge(bad), (Floats{0, 6, 1024, 0, 0})) << "it falls";
  EXPECT_EQ(judge(bad, 1, false), (Floats{0, 7, 256, 0, 0}));
  EXPECT_EQ(judge(statistics, 0, false), (Floats{1, 7, 256, 1, 1})) << "moves are not scaled";
  if (bench.n() == 0) return;
  // The norm to clip is the unscaled one.
  double squares = 0;
  for (float v : bench.Read(good)) squares += double(v) * v;
  const double norm = std::sqrt(squares);
  EXPECT_NEAR(judge(statistics, float(norm))[UpdateScale::kFactor], 1 / 256.0, 1e-9);
  const float clip = float(norm / 256 / 2);
  flat::PutNow(bench.queue(), Floats{-1, 5, 256, -1, 0}, scale);
  const Floats clipped = judge(statistics, clip);
  EXPECT_NEAR(clipped[UpdateScale::kFactor], clip / norm, 1e-6 * clip / norm);
  EXPECT_EQ(clipped[UpdateScale::kInverse], 1 / 256.0f);
}

// That gradients are known to be finite says nothing of their length, nor of statistics.
void CheckClipOfKnown(Bench& bench) {
  const Slice values = bench.Load(bench.Draw());
  for (const Floats& statistics : {Floats{0.5f, 2}, Floats{kNan, 0}}) {
    for (float clip : {0.0f, 0.1f, 1e9f}) {
      const auto judge = [&](bool known) {
        Gradient gradients(values);
        gradients.known_finite = known;
        const Slice scale = bench.Scale(-1, 5);
        flat::CheckAndClip(bench.queue(), gradients.First(bench.n()), bench.Load(statistics), clip,
                           {}, scale);
        return bench.Read(scale);
      };
      EXPECT_EQ(judge(true), judge(false)) << "clip " << clip;
    }
  }
}

// Wherever the bad value stands. Long slices: at some places only.
void CheckClipFinds(Bench& bench) {
  const Floats good = bench.Draw();
  const Slice scale = bench.Scale(1), empty = bench.Load({}), slice = bench.Load(good);
  float skipped = 0;
  for (size_t at = 0; at < bench.n(); at += bench.n() < 100 ? 1 : bench.n() / 37) {
    for (float bad : {kNan, kInf, -kInf}) {
      for (float clip : {0.0f, 1.0f}) {
        flat::PutNow(bench.queue(), {&bad, 1}, slice.Sub(at, 1));
        flat::CheckAndClip(bench.queue(), slice, empty, clip, {}, scale);
        flat::PutNow(bench.queue(), {&good[at], 1}, slice.Sub(at, 1));
        const Floats got = bench.Read(scale);
        ASSERT_EQ(got[UpdateScale::kFactor], 0) << bad << " at " << at << ", clip " << clip;
        ASSERT_EQ(got[UpdateScale::kSkipped], ++skipped);
      }
    }
  }
}

// Weight decay by block, or none.
class Decays {
 public:
  Decays(Bench& bench, bool any) : any_(any) {
    for (size_t i = 0; any && i < bench.n(); i += Layout::kAlignment) {
      values_.push_back(float(0.01 * double(i / Layout::kAlignment % 3)));
    }
    slice_ = any ? bench.Load(values_) : Slice{};
  }
  Slice slice() const { return slice_; }
  double at(size_t i) const { return any_ ? double(values_[i / Layout::kAlignment]) : 0; }

 private:
  const bool any_;
  Floats values_;
  Slice slice_;
};

void CheckSgd(Bench& bench, bool decay) {
  const double rate = 0.1, factor = 0.5;
  const Decays decays(bench, decay);
  for (double momentum : {0.0, 0.9}) {
    for (bool nesterov : {false, true}) {
      const Floats g = bench.Draw(), v = bench.Draw(), w = bench.Draw();
      const Slice scale = bench.Scale(float(factor)), gradient = bench.Load(g);
      const Slice velocity = momentum == 0 ? Slice{} : bench.Load(v), weight = bench.Load(w);
      flat::Update(bench.queue(), SgdRates{float(rate), float(momentum), nesterov}, scale,
                   decays.slice(), gradient, {velocity}, weight);
      const auto seen = [&](size_t i) { return factor * g[i] + decays.at(i) * w[i]; };
      const auto moved = [&](size_t i) { return momentum * v[i] + seen(i); };
      const auto step = [&](size_t i) {
        return nesterov && momentum != 0 ? seen(i) + momentum * moved(i) : moved(i);
      };
      if (momentum != 0) ExpectNear(bench.Read(velocity), moved, "sgd velocity");
      ExpectNear(
          bench.Read(weight), [&](size_t i) { return w[i] - rate * step(i); }, "sgd");
    }
  }
}

// Runs of zeros, shorter and longer than 64 bytes, and every other value.
void CheckSgdSkippingZeros(Bench& bench) {
  for (size_t period : {size_t(8), size_t(40), size_t(97)}) {
    Floats g = bench.Draw();
    const Floats w = bench.Draw();
    for (size_t i = 0; i < g.size(); ++i) {
      if (i / period % 2 == 0) g[i] = 0;
    }
    const Slice gradient = bench.Load(g), weight = bench.Load(w), dense = bench.Load(w);
    flat::Update(bench.queue(), SgdRates{0.1f, 0, false, true}, bench.Scale(1), {}, gradient, {},
                 weight);
    flat::Update(bench.queue(), SgdRates{0.1f, 0, false, false}, bench.Scale(1), {}, gradient, {},
                 dense);
    EXPECT_EQ(bench.Read(weight), bench.Read(dense)) << period;
  }
}

void CheckAdam(Bench& bench, bool decay) {
  const double rate = 0.02, factor = 0.5, root = 1.25, epsilon = 1e-3, shrink = 0.5;
  const Decays decays(bench, decay);
  for (bool decoupled : {false, true}) {
    const Floats g = bench.Draw(), m = bench.Draw(), s = bench.Draw(0, 1), w = bench.Draw();
    const Slice mean = bench.Load(m), square = bench.Load(s), weight = bench.Load(w);
    const AdamRates rates = {float(rate), 0.9f,           0.1f,      0.99f,        0.01f,
                             float(root), float(epsilon), decoupled, float(shrink)};
    flat::Update(bench.queue(), rates, bench.Scale(float(factor)), decays.slice(), bench.Load(g),
                 {mean, square}, weight);
    const auto seen = [&](size_t i) {
      return factor * g[i] + (decoupled ? 0 : decays.at(i) * w[i]);
    };
    const auto mean1 = [&](size_t i) { return 0.9 * m[i] + 0.1 * seen(i); };
    const auto square1 = [&](size_t i) { return 0.99 * s[i] + 0.01 * seen(i) * seen(i); };
    const auto weight1 = [&](size_t i) {
      return w[i] * (1 - (decoupled ? shrink * decays.at(i) : 0)) -
             rate * mean1(i) / (root * std::sqrt(square1(i)) + epsilon);
    };
    ExpectNear(bench.Read(mean), mean1, "adam mean");
    ExpectNear(bench.Read(square), square1, "adam square");
    ExpectNear(bench.Read(weight), weight1, "adam", 1e-5);
  }
}

void CheckAdagrad(Bench& bench, bool decay) {
  const double rate = 0.02, factor = 0.5, epsilon = 1e-3;
  const Decays decays(bench, decay);
  const Floats g = bench.Draw(), s = bench.Draw(0, 1), w = bench.Draw();
  const Slice sum = bench.Load(s), weight = bench.Load(w);
  flat::Update(bench.queue(), AdagradRates{float(rate), float(epsilon)}, bench.Scale(float(factor)),
               decays.slice(), bench.Load(g), {sum}, weight);
  const auto seen = [&](size_t i) { return factor * g[i] + decays.at(i) * w[i]; };
  const auto sum1 = [&](size_t i) { return s[i] + seen(i) * seen(i); };
  ExpectNear(bench.Read(sum), sum1, "adagrad sum");
  ExpectNear(
      bench.Read(weight),
      [&](size_t i) { return w[i] - rate * seen(i) / (std::sqrt(sum1(i)) + epsilon); }, "adagrad",
      1e-5);
}

void CheckRules(Bench& bench) {
  for (bool decay : {false, true}) {
    CheckSgd(bench, decay);
    CheckAdam(bench, decay);
    CheckAdagrad(bench, decay);
  }
  CheckSgdSkippingZeros(bench);
}

void CheckTrack(Bench& bench) {
  const Floats x = bench.Draw(), y = bench.Draw();
  const Slice running = bench.Load(y);
  flat::Track(bench.queue(), 0.1f, bench.Scale(1), bench.Load(x), running);
  ExpectNear(
      bench.Read(running), [&](size_t i) { return y[i] + 0.1 * (x[i] - y[i]); }, "track");
}

// Gradients of which some stretches are outer products, written and unwritten. Behind an unwritten
// one a layout may leave a gap, where everything is zero.
class OuterCase {
 public:
  explicit OuterCase(Bench& bench) : bench_(bench), written_(bench.Draw()) {
    Floats unwritten = written_;
    constexpr size_t kBlock = Layout::kAlignment;
    size_t begin = kBlock;
    for (size_t columns : {17, 16, 40, 333}) {
      const size_t rows = 3 + columns % 5;
      const size_t end = begin + rows * columns, next = (end + kBlock - 1) / kBlock * kBlock;
      if (next > bench.n()) break;
      Floats down = bench.Draw(), across = bench.Draw();
      down.resize(rows);
      down[1] = 0;
      across.resize(columns);
      for (size_t i = 0; i < rows * columns; ++i) {
        written_[begin + i] = down[i / columns] * across[i % columns];
        unwritten[begin + i] = kNan;  // nobody looks
      }
      for (size_t i = end; i < next; ++i) written_[i] = unwritten[i] = 0;
      gaps_.push_back({end, next - end});
      across.insert(across.end(), across.begin(), across.begin() + OuterProduct::kWrap);
      outers_.push_back({begin, bench.Load(down).data, bench.Load(across).data, rows, columns});
      begin = next + kBlock;
    }
    values_ = bench.Load(unwritten);
  }

  Gradient written() { return bench_.Load(written_); }
  Gradient unwritten() const { return {values_, outers_}; }
  // What rules keep, and weights.
  Floats Draw() {
    Floats x = bench_.Draw(0, 1);
    for (const Range& gap : gaps_) std::fill_n(x.begin() + ptrdiff_t(gap.begin), gap.size, 0.0f);
    return x;
  }
  std::vector<OuterProduct>& outers() { return outers_; }

 private:
  Bench& bench_;
  Floats written_;
  std::vector<OuterProduct> outers_;
  std::vector<Range> gaps_;
  Slice values_;
};

// Every rule sees the same bits, written or not.
void CheckUnwritten(Bench& bench) {
  OuterCase outer(bench);
  const Floats w = outer.Draw(), a = outer.Draw(), b = outer.Draw();
  const Decays some(bench, true), none(bench, false);
  const auto compare = [&](const char* what, const auto& apply) {
    Floats results[2];
    for (bool written : {false, true}) {
      const Slice weight = bench.Load(w), x = bench.Load(a), y = bench.Load(b);
      apply(written ? outer.written() : outer.unwritten(), x, y, weight);
      for (const Slice& slice : {weight, x, y}) {
        const Floats got = bench.Read(slice);
        results[written].insert(results[written].end(), got.begin(), got.end());
      }
    }
    EXPECT_EQ(results[0], results[1]) << what;
  };
  Queue& q = bench.queue();
  for (const Decays* decays : {&none, &some}) {
    const Slice d = decays->slice(), scale = bench.Scale(0.5f);
    for (float momentum : {0.0f, 0.9f}) {
      for (bool skips : {false, true}) {
        compare("sgd", [&](Gradient g, Slice x, Slice, Slice weight) {
          flat::Update(q, SgdRates{0.1f, momentum, momentum != 0, skips}, scale, d, g, {x}, weight);
        });
      }
    }
    for (bool decoupled : {false, true}) {
      compare("adam", [&](Gradient g, Slice x, Slice y, Slice weight) {
        flat::Update(q, AdamRates{0.1f, 0.9f, 0.1f, 0.9f, 0.1f, 1, 1e-3f, decoupled, 0.1f}, scale,
                     d, g, {x, y}, weight);
      });
    }
    compare("adagrad", [&](Gradient g, Slice x, Slice, Slice weight) {
      flat::Update(q, AdagradRates{0.1f, 1e-3f}, scale, d, g, {x}, weight);
    });
  }
}

// A product may be infinite where its factors are not.
void CheckClipOfUnwritten(Bench& bench) {
  OuterCase outer(bench);
  const Slice empty = bench.Load({});
  const auto factor = [&] {
    const Slice scale = bench.Scale(-1);
    flat::CheckAndClip(bench.queue(), outer.unwritten(), empty, 0, {}, scale);
    return bench.Read(scale)[UpdateScale::kFactor];
  };
  EXPECT_EQ(factor(), 1);
  for (OuterProduct& item : outer.outers()) {
    const OuterProduct good = item;
    const auto judge = [&](float down, float across) {
      Floats rows(good.rows, 0.5f), columns(good.columns + OuterProduct::kWrap, 0.5f);
      rows.back() = down;
      columns[good.columns - 1] = across;
      item.down = bench.Load(rows).data;
      item.across = bench.Load(columns).data;
      return factor();
    };
    EXPECT_EQ(judge(1e20f, -1e18f), 1);
    EXPECT_EQ(judge(1e20f, -1e20f), 0);
    for (float bad : {kNan, kInf, -kInf}) {
      EXPECT_EQ(judge(bad, 0), 0);
      EXPECT_EQ(judge(0, bad), 0);
    }
    item = good;
  }
}

// A factor of 0: not one bit moves, though the gradient is full of NaN.
void CheckSkip(Bench& bench) {
  const Floats a = bench.Draw(), b = bench.Draw(), c = bench.Draw();
  const Slice scale = bench.Scale(0), bad = bench.Load(Floats(bench.n(), kNan));
  const Slice x = bench.Load(a), y = bench.Load(b), z = bench.Load(c);
  const Decays decays(bench, true);
  flat::Update(bench.queue(), SgdRates{0.1f, 0.9f, true}, scale, decays.slice(), bad, {x}, y);
  flat::Update(bench.queue(), AdamRates{0.1f, 0.9f, 0.1f, 0.9f, 0.1f, 1, 1e-3f, true, 0.1f}, scale,
               decays.slice(), bad, {x, y}, z);
  flat::Update(bench.queue(), AdagradRates{0.1f, 1e-3f}, scale, decays.slice(), bad, {x}, y);
  flat::Track(bench.queue(), 0.1f, scale, bad, z);
  EXPECT_EQ(bench.Read(x), a);
  EXPECT_EQ(bench.Read(y), b);
  EXPECT_EQ(bench.Read(z), c);
}

// Bits, not values: zeros of both signs and what is not a number count too.
void CheckDigest(Bench& bench) {
  Floats x = bench.Draw();
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 7 == 3) x[i] = i % 2 ? -0.0f : 0.0f;
    if (i % 11 == 5) x[i] = kNan;
  }
  const size_t n = bench.n();
  std::vector<Range> ranges = {{0, n}, {n, 0}, {n / 3, n - n / 3}};
  for (size_t i = 0; i < 19; ++i) ranges.push_back({n * i / 19, n * (i + 1) / 19 - n * i / 19});
  const auto digests = [&](const Floats& values) {
    const Slice from = bench.Load(values);
    const Buffer out(*from.device, ranges.size() * flat::kDigestFloats);
    flat::Digest(bench.queue(), from, ranges, out);
    const Floats bits = bench.Read(out);
    std::vector<uint64_t> got(ranges.size());
    std::memcpy(got.data(), bits.data(), bits.size() * sizeof(float));
    return got;
  };
  const std::vector<uint64_t> got = digests(x);
  for (size_t r = 0; r < ranges.size(); ++r) {
    uint64_t want = 0;
    const auto bits = [&](size_t i) {
      return i < ranges[r].size ? std::bit_cast<uint32_t>(x[ranges[r].begin + i]) : 0;
    };
    for (size_t i = 0; i < ranges[r].size; i += 2) {
      want += DigestTerm(WordOf(bits(i), bits(i + 1)), i / 2);
    }
    EXPECT_EQ(got[r], want) << "digest of range " << r;
  }
  if (n < 2) return;
  Floats changed = x;
  changed[n - 1] = std::bit_cast<float>(std::bit_cast<uint32_t>(x[n - 1]) ^ 1u);
  EXPECT_NE(digests(changed)[0], got[0]) << "the last bit of the last value";
  EXPECT_EQ(digests(changed)[3], got[3]);
  changed = x;
  changed[0] = 1;
  changed[1] = 2;
  const uint64_t before = digests(changed)[0];
  std::swap(changed[0], changed[1]);
  EXPECT_NE(digests(changed)[0], before) << "two values that changed places";
}

}  // namespace

void CheckTable(Device& device, size_t n, size_t offset, uint64_t seed, bool unwritten) {
  std::vector<void (*)(Bench&)> checks = {CheckMoves,      CheckSums,      CheckSumInOrder,
                                          CheckClipFactor, CheckLossScale, CheckClipOfKnown,
                                          CheckClipFinds,  CheckRules,     CheckTrack,
                                          CheckSkip,       CheckDigest,    CheckDot};
  if (unwritten) checks.insert(checks.end(), {CheckUnwritten, CheckClipOfUnwritten});
  for (const auto check : checks) {
    Bench bench(device, n, offset, seed);
    check(bench);
    bench.CheckFences();
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace trireme
