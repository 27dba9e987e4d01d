#include "flat/cpu/host_ops.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/team.h"
#include "flat/digest.h"

namespace trireme::host {
namespace {

constexpr size_t kBlock = Layout::kAlignment;  // slices are cut only between blocks
// A team is called for at least two pieces of this many floats: below, one core has the data in its
// own cache and is done before others have woken (784-200-10 at batch 1, two threads: 4,800 steps/s
// with 1 << 16, 10,400 with more).
constexpr size_t kPiece = 1 << 17;

// work(begin, end) over [0, count), by the team if there is one and it is free.
template <class Work>
void Together(SharedTeam* team, size_t count, size_t grain, const Work& work) {
  if (!team) return work(size_t{0}, count);
  const std::unique_lock lock(team->mutex, std::try_to_lock);
  lock ? ParallelFor(team->team, count, grain, work) : work(size_t{0}, count);
}

// work(begin, size) over [0, n), elementwise: how it is cut does not matter.
template <class Work>
void Split(SharedTeam* team, size_t n, const Work& work) {
  if (n < 2 * kPiece) return n > 0 ? work(size_t{0}, n) : void();
  const size_t blocks = (n + kBlock - 1) / kBlock;
  Together(team, blocks, kPiece / kBlock, [&](size_t begin, size_t end) {
    work(begin * kBlock, std::min(n, end * kBlock) - begin * kBlock);
  });
}

// Like Split for a sum. The cut depends on n alone and the parts are added in order, so the result
// has the same bits for any team.
template <class Work>
double SplitSum(SharedTeam* team, size_t n, const Work& work) {
  constexpr size_t kMostParts = 128;
  const size_t size = std::max(kPiece, (n + kMostParts - 1) / kMostParts);
  if (n <= size) return work(size_t{0}, n);
  std::array<double, kMostParts> sums;
  const size_t parts = (n + size - 1) / size;
  Together(team, parts, 1, [&](size_t begin, size_t end) {
    for (size_t p = begin; p < end; ++p) sums[p] = work(p * size, std::min(size, n - p * size));
  });
  return std::accumulate(sums.begin(), sums.begin() + ptrdiff_t(parts), 0.0);
}

void Move(SharedTeam* team, const float* from, float* to, size_t n) {
  Split(team, n,
        [=](size_t at, size_t size) { std::memmove(to + at, from + at, size * sizeof(float)); });
}

// Calls work(gradients, at, size) for the stretches of [begin, begin + size), written ones and
// others. What a layout leaves empty behind an unwritten one is zero and stays so.
template <class Work>
void WalkStretches(const Gradient& g, size_t begin, size_t size, const Work& work) {
  const size_t end = begin + size;
  const auto written = [&](size_t at, size_t stop) {
    if (at < stop) work(loops::GradientsAt{g.values.data + at}, at, stop - at);
  };
  size_t at = begin;
  for (const OuterProduct& outer : g.unwritten) {
    const size_t first = std::clamp(outer.begin, at, end), last = std::clamp(outer.end(), at, end);
    written(at, first);
    if (first < last) {
      work(loops::GradientsAt{nullptr, &outer, first - outer.begin}, first, last - first);
    }
    at = std::clamp(outer.next(), at, end);
  }
  written(at, end);
}

bool AllFinite(SharedTeam* team, Slice x) {
  return SplitSum(team, x.size, [=](size_t at, size_t size) {
           return std::isfinite(loops::Largest(x.data + at, size)) ? 0.0 : 1.0;
         }) == 0;
}

// The largest product is that of the largest factors, and one that is not finite spoils its row or
// column.
bool IsFinite(const OuterProduct& outer) {
  const float down = loops::Largest(outer.down, outer.rows);
  const float across = loops::Largest(outer.across, outer.columns);
  return std::isfinite(down * across);
}

bool AllFinite(SharedTeam* team, const Gradient& g) {
  if (g.known_finite) return true;
  if (g.unwritten.empty()) return AllFinite(team, g.values);
  bool finite = true;
  WalkStretches(g, 0, g.values.size, [&](const loops::GradientsAt& part, size_t at, size_t size) {
    finite =
        finite && (part.values ? AllFinite(team, g.values.Sub(at, size)) : IsFinite(*part.outer));
  });
  return finite;
}

double NormOf(SharedTeam* team, Slice x) {
  return std::sqrt(SplitSum(team, x.size, [=](size_t at, size_t size) {
    return loops::Dot(x.data + at, x.data + at, size);
  }));
}

}  // namespace

void Put(SharedTeam* team, const float* host, Slice to) { Move(team, host, to.data, to.size); }

void Get(SharedTeam* team, Slice from, float* host) { Move(team, from.data, host, from.size); }

void Copy(SharedTeam* team, Slice from, Slice to) { Move(team, from.data, to.data, to.size); }

void Fill(SharedTeam* team, float value, Slice to) {
  Split(team, to.size, [=](size_t at, size_t size) { loops::Fill(value, to.data + at, size); });
}

void Add(SharedTeam* team, Slice from, Slice to) {
  Split(team, to.size,
        [=](size_t at, size_t size) { loops::Add(from.data + at, to.data + at, size); });
}

void Blend(SharedTeam* team, float a, Slice x, float b, Slice y) {
  Split(team, y.size,
        [=](size_t at, size_t size) { loops::Blend(a, x.data + at, b, y.data + at, size); });
}

void Scale(SharedTeam* team, float a, Slice x) {
  Split(team, x.size, [=](size_t at, size_t size) { loops::Scale(a, x.data + at, size); });
}

void Dot(SharedTeam* team, Slice x, Slice y, Slice out) {
  const double sum = SplitSum(team, x.size, [=](size_t at, size_t size) {
    return loops::Dot(x.data + at, y.data + at, size);
  });
  std::memcpy(out.data, &sum, sizeof(sum));
}

void SumInOrder(SharedTeam* team, Slice start, const SliceList& parts, Slice out) {
  Split(team, out.size, [=, &parts](size_t at, size_t size) {
    loops::SumInOrder(start.data + at, parts, at, out.data + at, size);
  });
}

void ElasticPull(SharedTeam* team, float alpha, Slice centre, Slice weights, Slice pull) {
  Split(team, weights.size, [=](size_t at, size_t size) {
    loops::ElasticPull(alpha, centre.data + at, weights.data + at, pull.data + at, size);
  });
}

void CheckAndClip(SharedTeam* team, Gradient gradients, Slice statistics, float clip,
                  const LossScaling& loss, Slice scale) {
  const double norm = clip > 0 ? NormOf(team, gradients.values) : 0;
  const bool finite =
      AllFinite(team, statistics) && (clip > 0 ? std::isfinite(norm) : AllFinite(team, gradients));
  Judge(loss, finite, clip, norm, scale.data);
}

void ForStretches(SharedTeam* team, Slice scale, const Gradient& gradient,
                  FunctionRef<void(const Stretch&)> work) {
  const float factor = scale.data[UpdateScale::kFactor];
  if (factor == 0) return;
  Split(team, gradient.values.size, [&](size_t begin, size_t count) {
    WalkStretches(gradient, begin, count, [&](const loops::GradientsAt& g, size_t at, size_t size) {
      work({factor, g, at, size});
    });
  });
}

void Track(SharedTeam* team, float momentum, Slice scale, Slice seen, Slice running) {
  if (scale.data[UpdateScale::kFactor] == 0) return;
  Split(team, running.size, [=](size_t at, size_t size) {
    loops::Track(momentum, seen.data + at, running.data + at, size);
  });
}

void Digest(SharedTeam* team, Slice from, const RangeList& ranges, Slice out) {
  for (size_t r = 0; r < ranges.size; ++r) {
    const Range range = ranges.items[r];
    const float* const values = from.data + range.begin;
    std::atomic<uint64_t> digest = 0;
    Split(team, range.size, [&](size_t at, size_t size) {
      uint64_t sum = 0;  // cut between blocks: `at` is even
      for (size_t i = at; i < at + size; i += 2) {
        const uint32_t second = i + 1 < at + size ? std::bit_cast<uint32_t>(values[i + 1]) : 0;
        sum += DigestTerm(WordOf(std::bit_cast<uint32_t>(values[i]), second), i / 2);
      }
      digest += sum;
    });
    const uint64_t whole = digest;
    std::memcpy(out.data + r * flat::kDigestFloats, &whole, sizeof(whole));
  }
}

}  // namespace trireme::host
