#include "optimizer/weight_average.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "flat/cpu/host.h"
#include "flat/staging.h"

namespace trireme {
namespace {

constexpr size_t kFloats = 37;

std::vector<float> StateAfter(int64_t step) {
  const Random random(HashKey(7, uint64_t(step + 1)));
  std::vector<float> state(kFloats);
  for (size_t i = 0; i < kFloats; ++i) state[i] = float(random.Normal(i));
  return state;
}

std::vector<float> OnHost(Queue& queue, Slice slice) {
  std::vector<float> host(slice.size);
  flat::GetNow(queue, slice, host);
  return host;
}

// Steps [from, to) of an average that begins with `average`.
std::vector<float> Averaged(double decay, std::vector<float> average, int64_t from, int64_t to) {
  HostDevice device;
  const auto queue = device.NewQueue();
  WeightAverage weights(decay, kFloats, device);
  const Buffer state(device, kFloats);
  weights.Begin(*queue, average);
  for (int64_t step = from; step < to; ++step) {
    flat::PutNow(*queue, StateAfter(step), state);
    weights.Add(*queue, step, state);
  }
  return OnHost(*queue, weights.slice());
}

TEST(WeightAverage, IsTheFormulaInDouble) {
  for (const double decay : {0.5, 0.9, 0.999}) {
    const std::vector<float> first = StateAfter(-1);
    std::vector<double> want(first.begin(), first.end());
    constexpr int64_t kSteps = 60;
    for (int64_t step = 0; step < kSteps; ++step) {
      const double kept = std::min(decay, (1.0 + double(step)) / (10.0 + double(step)));
      const std::vector<float> state = StateAfter(step);
      for (size_t i = 0; i < kFloats; ++i) want[i] = kept * want[i] + (1 - kept) * state[i];
    }
    const std::vector<float> got = Averaged(decay, first, 0, kSteps);
    for (size_t i = 0; i < kFloats; ++i) EXPECT_NEAR(got[i], want[i], 2e-6) << decay << " " << i;
  }
}

TEST(WeightAverage, GoesOnFromAnyStepToTheSameBits) {
  const std::vector<float> whole = Averaged(0.95, StateAfter(-1), 0, 40);
  for (const int64_t step : {0, 1, 17, 39, 40}) {
    EXPECT_EQ(Averaged(0.95, Averaged(0.95, StateAfter(-1), 0, step), step, 40), whole) << step;
  }
}

TEST(WeightAverage, WeightsThatStayAreTheirAverage) {
  HostDevice device;
  const auto queue = device.NewQueue();
  WeightAverage weights(0.9, kFloats, device);
  const std::vector<float> first = StateAfter(3);
  const Buffer state(device, kFloats);
  flat::PutNow(*queue, first, state);
  weights.Begin(*queue, first);
  for (int64_t step = 0; step < 100; ++step) weights.Add(*queue, step, state);
  const std::vector<float> got = OnHost(*queue, weights.slice());
  for (size_t i = 0; i < kFloats; ++i) {
    EXPECT_NEAR(got[i], first[i], 1e-5f * std::fabs(first[i]));
  }
}

TEST(WeightAverage, TheFirstStepsKeepLess) {
  HostDevice device;
  const WeightAverage weights(0.999, kFloats, device);
  EXPECT_DOUBLE_EQ(weights.DecayAt(0), 0.1);
  EXPECT_DOUBLE_EQ(weights.DecayAt(90), 0.91);
  EXPECT_EQ(weights.DecayAt(1'000'000), 0.999);
  for (int64_t step = 1; step < 20'000; ++step) {
    EXPECT_GE(weights.DecayAt(step), weights.DecayAt(step - 1));
  }
}

}  // namespace
}  // namespace trireme
