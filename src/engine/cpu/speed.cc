#include "engine/cpu/speed.h"

#include <atomic>
#include <cstring>
#include <vector>

#include "base/clock.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/speed.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Independent sums: more than units times latency, fewer than registers.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr size_t kChains = 24;
#else
constexpr size_t kChains = 12;
#endif

// Chains of multiply-adds; gives how many operations they were. `sink` keeps the compiler honest.
double RunChains(size_t rounds, float* sink) {
  const Floats d;
  const V factor = hn::Set(d, 0.5f), addend = hn::Set(d, *sink);
  V sum[kChains];
  // All loops are unrolled, or the sums would lie in memory. No two are the same, or g++ would make
  // one chain of them.
#pragma GCC unroll 24
  for (size_t c = 0; c < kChains; ++c) sum[c] = hn::Set(d, *sink * float(c));
  for (size_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (size_t c = 0; c < kChains; ++c) sum[c] = hn::MulAdd(factor, addend, sum[c]);
  }
#pragma GCC unroll 24
  for (size_t c = 1; c < kChains; ++c) sum[0] = hn::Add(sum[0], sum[c]);
  *sink = hn::GetLane(sum[0]);
  return 2.0 * double(rounds) * kChains * kLanes;
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::cpu {
HWY_EXPORT(RunChains);

namespace {

// Runs portion(thread), which says how much it did, on all threads until the time is over. They
// begin together, and what is done counts by the slowest's clock.
template <class F>
double Rate(Team& team, double seconds, const F& portion) {
  std::vector<double> done(static_cast<size_t>(team.size()) * 8);  // a cache line each
  const Stopwatch watch;
  team.Run([&](int thread) {
    do {
      done[static_cast<size_t>(thread) * 8] += portion(thread);
    } while (watch.seconds() < seconds);
  });
  const double passed = watch.seconds();
  double all = 0;
  for (const double d : done) all += d;
  return all / passed;
}

}  // namespace

double MeasureMultiplyAdds(Team& team, double seconds, const MatrixUnit* unit) {
  constexpr size_t kRounds = 2000;  // some ten microseconds
  return Rate(team, seconds, [&](int) {
    if (unit) return unit->run_chains(kRounds);
    float sink = 1e-3f;
    return HWY_DYNAMIC_DISPATCH(RunChains)(kRounds, &sink);
  });
}

double MeasureCopy(Team& team, double seconds) {
  constexpr size_t kFloats = 16 << 20;  // 64 MB for each thread: no cache holds twice as much
  std::vector<std::vector<float>> from(static_cast<size_t>(team.size())), to(from.size());
  team.Run([&](int thread) {  // touched by whoever copies it
    from[static_cast<size_t>(thread)].resize(kFloats, 1.0f);
    to[static_cast<size_t>(thread)].resize(kFloats);
  });
  return Rate(team, seconds, [&](int thread) {
    const size_t t = static_cast<size_t>(thread);
    std::memcpy(to[t].data(), from[t].data(), kFloats * sizeof(float));
    return double(kFloats * sizeof(float));
  });
}

}  // namespace trireme::cpu
#endif  // HWY_ONCE
