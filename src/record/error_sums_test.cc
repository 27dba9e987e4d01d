#include "record/error_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace trireme {
namespace {

using Pairs = std::vector<std::pair<double, double>>;  // true, predicted

ErrorSums SumsOf(const Pairs& pairs) {
  ErrorSums sums;
  for (const auto& [truth, predicted] : pairs) {
    const double error = predicted - truth;
    sums.Add({.samples = 1, .squares = error * error, .absolutes = std::abs(error), .mean = truth});
  }
  return sums;
}

TEST(ErrorSums, AreThoseOfTheTextbook) {
  const ErrorSums sums = SumsOf({{1, 2}, {2, 2}, {3, 2}, {6, 4}});
  EXPECT_DOUBLE_EQ(sums.Rmse(), std::sqrt(6.0 / 4));
  EXPECT_DOUBLE_EQ(sums.Mae(), 1);
  EXPECT_DOUBLE_EQ(sums.R2().value(), 1 - 6.0 / 14);
}

TEST(ErrorSums, OfPartsAddUpToThoseOfTheWhole) {
  const Pairs low = {{1, 2}, {2, 2}, {1.5, 0}}, high = {{1001, 1000}, {1007, 1001}};
  Pairs all = low;
  all.insert(all.end(), high.begin(), high.end());
  ErrorSums sums = SumsOf(low);
  sums.Add(SumsOf(high));
  sums.Add({});
  EXPECT_EQ(sums.samples, 5);
  EXPECT_NEAR(sums.R2().value(), SumsOf(all).R2().value(),
              1e-12);  // not the mean of the parts' own
  EXPECT_NEAR(sums.Rmse(), SumsOf(all).Rmse(), 1e-12);
  EXPECT_NEAR(sums.mean, SumsOf(all).mean, 1e-12);
}

TEST(ErrorSums, OfEqualNumbersHaveNoR2) {
  EXPECT_FALSE(SumsOf({{5, 4}, {5, 5}}).R2());
  EXPECT_FALSE(ErrorSums().R2());
  EXPECT_EQ(ErrorSums().Rmse(), 0);
}

}  // namespace
}  // namespace trireme
