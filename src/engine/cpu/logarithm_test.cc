#include "engine/cpu/logarithm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace trireme::cpu {
namespace {

TEST(LogarithmTest, IsTheNearestFloat) {
  const auto exact = [](float x) { return float(std::log(double(x))); };
  // All of [1/2, 4) in steps of some floats, then all orders of magnitude, subnormals with them.
  for (uint32_t bits = 0x3f000000; bits < 0x40800000; bits += 37) {
    const float x = std::bit_cast<float>(bits);
    ASSERT_EQ(Logarithm(x), exact(x)) << x;
  }
  for (uint32_t bits = 1; bits < 0x7f800000; bits += 19'997) {
    const float x = std::bit_cast<float>(bits);
    ASSERT_EQ(Logarithm(x), exact(x)) << x;
  }
}

TEST(LogarithmTest, HasTheEndsOfOtherLogarithms) {
  using Limits = std::numeric_limits<float>;
  EXPECT_EQ(Logarithm(1), 0);
  EXPECT_EQ(Logarithm(0), -Limits::infinity());
  EXPECT_EQ(Logarithm(Limits::infinity()), Limits::infinity());
  EXPECT_EQ(Logarithm(Limits::max()), std::log(Limits::max()));
  EXPECT_TRUE(std::isnan(Logarithm(-1)));
  EXPECT_TRUE(std::isnan(Logarithm(Limits::quiet_NaN())));
}

}  // namespace
}  // namespace trireme::cpu
