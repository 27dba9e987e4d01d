#include "data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

namespace trireme {
namespace {

std::vector<int64_t> Epoch(const Order& order, int64_t epoch) {
  std::vector<int64_t> samples(order.size());
  order.Fill(epoch, 0, samples);
  return samples;
}

// Chi-square against equal counts as a standard normal variable (Wilson, Hilferty 1931).
double Excess(const std::vector<int64_t>& counts) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double expected = total / counts.size();
  double chi_square = 0;
  for (const int64_t count : counts)
    chi_square += (count - expected) * (count - expected) / expected;
  const double freedom = counts.size() - 1.0;
  const double variance = 2 / (9 * freedom);
  return (std::cbrt(chi_square / freedom) - (1 - variance)) / std::sqrt(variance);
}

TEST(Order, VisitsEverySampleOnce) {
  for (const int64_t n :
       {1,  2,   3,   4,   5,   6,   7,    8,    9,    13,     16,     17,     31,     64,
        97, 120, 127, 128, 129, 150, 1000, 1024, 4097, 50'000, 60'000, 65'536, 65'537, 99'991}) {
    const Order order(42, n, true);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> samples = Epoch(order, epoch);
      std::sort(samples.begin(), samples.end());
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(samples[i], i) << "of " << n;
    }
  }
}

TEST(Order, FillAgreesWithAtFromAnyPosition) {
  const Order order(7, 120, true);
  std::vector<int64_t> part(17);
  order.Fill(5, 90, part);
  for (int i = 0; i < 17; ++i) EXPECT_EQ(part[i], order.At(5, 90 + i));
}

TEST(Order, WithoutShuffleIsTheIndex) {
  const Order order(7, 10, false);
  std::vector<int64_t> samples = Epoch(order, 3);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(samples[i], i);
  EXPECT_EQ(order.At(8, 4), 4);
}

TEST(Order, DependsOnSeedAndEpoch) {
  EXPECT_NE(Epoch(Order(1, 1000, true), 0), Epoch(Order(2, 1000, true), 0));
  EXPECT_NE(Epoch(Order(1, 1000, true), 0), Epoch(Order(1, 1000, true), 1));
  EXPECT_EQ(Epoch(Order(1, 1000, true), 9), Epoch(Order(1, 1000, true), 9));
}

// A checkpoint names positions, so the order of a seed may never change between versions.
TEST(Order, StaysWhatItIs) {
  const Order order(0, 150, true);
  EXPECT_EQ((std::vector<int64_t>{order.At(0, 0), order.At(0, 1), order.At(3, 149)}),
            (std::vector<int64_t>{24, 105, 10}));
}

TEST(Order, EveryPositionSeesEverySampleEquallyOften) {
  for (const int64_t n : {2, 3, 5, 8, 10, 16, 30, 120, 150, 257}) {
    const Order order(11, n, true);
    for (const int64_t position : {int64_t{0}, n / 2, n - 1}) {
      std::vector<int64_t> counts(n);
      for (int64_t epoch = 0; epoch < 400 * n; ++epoch) ++counts[order.At(epoch, position)];
      EXPECT_LT(Excess(counts), 4.0) << "position " << position << " of " << n;
    }
  }
}

TEST(Order, NeighboursAreIndependent) {
  for (const int64_t n : {3, 4, 5, 7, 8, 12, 30, 50, 64, 120}) {
    for (const int64_t distance : {1, 2}) {
      const Order order(5, n, true);
      std::vector<int64_t> counts(n * n);
      for (int64_t epoch = 0; epoch < std::min<int64_t>(400 * n * n, 1'500'000); ++epoch) {
        ++counts[order.At(epoch, 0) * n + order.At(epoch, distance)];
      }
      std::vector<int64_t> pairs;  // of different samples
      for (int64_t i = 0; i < n * n; ++i) {
        if (i / n != i % n) pairs.push_back(counts[i]);
      }
      EXPECT_LT(Excess(pairs), 4.0) << "distance " << distance << " of " << n;
    }
  }
}

TEST(Order, StepsBetweenNeighboursWithinAnEpochAreSpread) {
  const int64_t n = 60'000;
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    const std::vector<int64_t> samples = Epoch(Order(3, n, true), epoch);
    std::vector<int64_t> counts(100);
    for (int64_t i = 1; i < n; ++i) {
      ++counts[((samples[i] - samples[i - 1] + n) % n) * 100 / n];
    }
    EXPECT_LT(Excess(counts), 4.0);
  }
}

TEST(Order, ReachesAllPermutationsOfAFewEquallyOften) {
  for (const int64_t n : {3, 4, 5}) {
    std::map<std::vector<int64_t>, int64_t> seen;
    const Order order(1, n, true);
    for (int64_t epoch = 0; epoch < 60'000; ++epoch) ++seen[Epoch(order, epoch)];
    std::vector<int64_t> counts;
    for (const auto& [permutation, count] : seen) counts.push_back(count);
    EXPECT_EQ(counts.size(), n == 3 ? 6u : n == 4 ? 24u : 120u);
    EXPECT_LT(Excess(counts), 4.0) << n;
  }
}

}  // namespace
}  // namespace trireme
