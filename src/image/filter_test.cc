#include "image/filter.h"

#include <gtest/gtest.h>

#include <numeric>

namespace trireme {
namespace {

Filter Make(double begin, double length, int size, bool mirrored = false) {
  Filter filter;
  MakeFilter(begin, length, size, mirrored, filter);
  return filter;
}

TEST(Filter, WeightsSumToOneAndStayInside) {
  for (const double begin : {0.0, 0.5, 3.0, 7.25}) {
    for (const double length : {0.5, 1.0, 2.0, 3.3, 10.0, 100.0, 333.0}) {
      for (const int size : {1, 2, 7, 100, 224}) {
        const Filter filter = Make(begin, length, size);
        ASSERT_EQ(filter.size(), size);
        for (int i = 0; i < size; ++i) {
          const float* weights = filter.weights.data() + i * filter.taps;
          EXPECT_NEAR(std::accumulate(weights, weights + filter.taps, 0.0), 1, 1e-5);
          EXPECT_GE(filter.first[i], static_cast<int>(begin));
          EXPECT_LE(filter.first[i] + filter.taps, begin + length + 1);
        }
      }
    }
  }
}

TEST(Filter, SameSizeIsTheIdentity) {
  const Filter filter = Make(2, 5, 5);
  for (int i = 0; i < 5; ++i) {
    for (int t = 0; t < filter.taps; ++t) {
      EXPECT_EQ(filter.weights[i * filter.taps + t], filter.first[i] + t == 2 + i ? 1 : 0);
    }
  }
}

TEST(Filter, HalvingIsTheTriangleOfFour) {
  const Filter filter = Make(0, 100, 50);  // weights 1 3 3 1 of 8, as Pillow's
  const float* weights = filter.weights.data() + 20 * filter.taps;
  const int before = 39 - filter.first[20];
  const float expected[] = {0.125f, 0.375f, 0.375f, 0.125f};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(weights[before + i], expected[i], 1e-6) << i;
}

TEST(Filter, MirroredIsTheReverse) {
  const Filter plain = Make(1.5, 20, 7), mirrored = Make(1.5, 20, 7, true);
  ASSERT_EQ(plain.taps, mirrored.taps);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(plain.first[i], mirrored.first[6 - i]);
    for (int t = 0; t < plain.taps; ++t) {
      EXPECT_EQ(plain.weights[i * plain.taps + t], mirrored.weights[(6 - i) * plain.taps + t]);
    }
  }
}

}  // namespace
}  // namespace trireme
