#include "flat/host_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/team.h"
#include "flat/cpu/loops.h"

namespace trireme::host {
namespace {

// Below this length (floats) one core is done before others have woken.
constexpr size_t kGrain = 1 << 15;

// work(begin, size) over [0, n), elementwise: how it is cut does not matter.
template <class Work>
void Split(Team* team, size_t n, const Work& work) {
  if (!team || n < 2 * kGrain) return n > 0 ? work(size_t{0}, n) : void();
  ParallelFor(*team, n, kGrain, [&](size_t begin, size_t end) { work(begin, end - begin); });
}

// Like Split for a sum. The cut depends on n alone and the parts are added in order, so the result
// has the same bits for any team.
template <class Work>
double SplitSum(Team* team, size_t n, const Work& work) {
  constexpr size_t kMostParts = 128;
  const size_t size = std::max(kGrain, (n + kMostParts - 1) / kMostParts);
  if (n <= size) return work(size_t{0}, n);
  std::array<double, kMostParts> sums;
  const size_t parts = (n + size - 1) / size;
  const auto sum_parts = [&](size_t begin, size_t end) {
    for (size_t p = begin; p < end; ++p) sums[p] = work(p * size, std::min(size, n - p * size));
  };
  team ? ParallelFor(*team, parts, 1, sum_parts) : sum_parts(0, parts);
  return std::accumulate(sums.begin(), sums.begin() + ptrdiff_t(parts), 0.0);
}

void Move(Team* team, const float* from, float* to, size_t n) {
  Split(team, n,
        [=](size_t at, size_t size) { std::memmove(to + at, from + at, size * sizeof(float)); });
}

bool AllFinite(Team* team, Slice x) {
  return SplitSum(team, x.size, [=](size_t at, size_t size) {
           return loops::AllFinite(x.data + at, size) ? 0.0 : 1.0;
         }) == 0;
}

float FactorOf(Team* team, Slice gradients, Slice statistics, float clip) {
  if (!AllFinite(team, statistics)) return 0;
  if (clip <= 0) return AllFinite(team, gradients) ? 1 : 0;
  const double norm = std::sqrt(SplitSum(team, gradients.size, [=](size_t at, size_t size) {
    return loops::SumOfSquares(gradients.data + at, size);
  }));
  if (!std::isfinite(norm)) return 0;
  return norm > clip ? float(clip / norm) : 1;
}

}  // namespace

void Put(Team* team, const float* host, Slice to) { Move(team, host, to.data, to.size); }

void Get(Team* team, Slice from, float* host) { Move(team, from.data, host, from.size); }

void Copy(Team* team, Slice from, Slice to) { Move(team, from.data, to.data, to.size); }

void Fill(Team* team, float value, Slice to) {
  Split(team, to.size, [=](size_t at, size_t size) { loops::Fill(value, to.data + at, size); });
}

void Add(Team* team, Slice from, Slice to) {
  Split(team, to.size,
        [=](size_t at, size_t size) { loops::Add(from.data + at, to.data + at, size); });
}

void Blend(Team* team, float a, Slice x, float b, Slice y) {
  Split(team, y.size,
        [=](size_t at, size_t size) { loops::Blend(a, x.data + at, b, y.data + at, size); });
}

void Fold(Team* team, Slice start, const SliceList& parts, Slice out) {
  Split(team, out.size, [=, &parts](size_t at, size_t size) {
    loops::Fold(start.data + at, parts, at, out.data + at, size);
  });
}

void ElasticPull(Team* team, float alpha, Slice centre, Slice weights, Slice pull) {
  Split(team, weights.size, [=](size_t at, size_t size) {
    loops::ElasticPull(alpha, centre.data + at, weights.data + at, pull.data + at, size);
  });
}

void Guard(Team* team, Slice gradients, Slice statistics, float clip, Slice verdict) {
  const float factor = FactorOf(team, gradients, statistics, clip);
  verdict.data[Verdict::kFactor] = factor;
  if (factor == 0) verdict.data[Verdict::kSkipped] += 1;
}

void Sgd(Team* team, const SgdRates& r, Slice verdict, Slice gradient, Slice velocity,
         Slice weight) {
  const float factor = verdict.data[Verdict::kFactor];
  if (factor == 0) return;
  Split(team, weight.size, [=, &r](size_t at, size_t size) {
    float* v = r.momentum == 0 ? nullptr : velocity.data + at;
    loops::Sgd(r, factor, gradient.data + at, v, weight.data + at, size);
  });
}

void Adam(Team* team, const AdamRates& r, Slice verdict, Slice gradient, Slice mean, Slice square,
          Slice weight) {
  const float factor = verdict.data[Verdict::kFactor];
  if (factor == 0) return;
  Split(team, weight.size, [=, &r](size_t at, size_t size) {
    loops::Adam(r, factor, gradient.data + at, mean.data + at, square.data + at, weight.data + at,
                size);
  });
}

void Adagrad(Team* team, const AdagradRates& r, Slice verdict, Slice gradient, Slice sum,
             Slice weight) {
  const float factor = verdict.data[Verdict::kFactor];
  if (factor == 0) return;
  Split(team, weight.size, [=, &r](size_t at, size_t size) {
    loops::Adagrad(r, factor, gradient.data + at, sum.data + at, weight.data + at, size);
  });
}

void Track(Team* team, float momentum, Slice verdict, Slice seen, Slice running) {
  if (verdict.data[Verdict::kFactor] == 0) return;
  Split(team, running.size, [=](size_t at, size_t size) {
    loops::Track(momentum, seen.data + at, running.data + at, size);
  });
}

}  // namespace trireme::host
