#include "base/half.h"

#include <gtest/gtest.h>

#include <limits>

namespace trireme {
namespace {

TEST(Half, EveryOneIsItself) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const float value = FloatOfHalf(uint16_t(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(FloatOfHalf(HalfBitsOf(value))));
    } else {
      ASSERT_EQ(HalfBitsOf(value), bits) << value;
      ASSERT_EQ(RoundToHalf(value), value);
    }
  }
}

TEST(Half, KnowsWhatThePaperSays) {
  EXPECT_EQ(FloatOfHalf(0x3c00), 1);
  EXPECT_EQ(FloatOfHalf(0xc000), -2);
  EXPECT_EQ(FloatOfHalf(0x7bff), 65504);
  EXPECT_EQ(FloatOfHalf(0x0400), 0x1p-14f);
  EXPECT_EQ(FloatOfHalf(0x0001), 0x1p-24f);
}

TEST(Half, RoundsToTheNearestAndOfTwoToTheEvenOne) {
  EXPECT_EQ(RoundToHalf(2049), 2048);
  EXPECT_EQ(RoundToHalf(2051), 2052);
  EXPECT_EQ(RoundToHalf(2049.1), 2050);
  EXPECT_EQ(RoundToHalf(-1 - 0x1p-11), -1);
  EXPECT_EQ(RoundToHalf(1 + 3 * 0x1p-11), 1 + 2 * 0x1p-10);
  EXPECT_EQ(RoundToHalf(65519), 65504);
  EXPECT_EQ(RoundToHalf(-65520), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(RoundToHalf(0x1p-25), 0);
  EXPECT_EQ(RoundToHalf(0x1p-25 * 1.01), 0x1p-24);
  EXPECT_EQ(RoundToHalf(2047.9), 2048) << "into the next power of two";
}

}  // namespace
}  // namespace trireme
