#include "transport/collective/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace trireme {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Bfloat16, EveryOneOfThemSurvivesTheWayThereAndBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = FromBfloat16(uint16_t(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(FromBfloat16(ToBfloat16(value))));
      EXPECT_EQ(ToBfloat16(FromBfloat16(ToBfloat16(value))), ToBfloat16(value));
    } else {
      ASSERT_EQ(ToBfloat16(value), bits);
    }
  }
}

// Every finite float lies between two neighbours; 2^128 stands for infinity.
TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  const Random random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    uint32_t bits = uint32_t(random.Bits(i)) & 0x7fffffffu;
    if (i % 4 == 0) bits = (bits & 0xffff0000u) | 0x8000u;  // a tie
    const float value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    const auto at = [](uint32_t half) {
      const float x = FromBfloat16(uint16_t(half));
      return std::isinf(x) ? 0x1p128 : double(x);
    };
    const uint32_t below = bits >> 16;
    const double down = double(value) - at(below), up = at(below + 1) - double(value);
    const uint32_t expected = down < up || (down == up && below % 2 == 0) ? below : below + 1;
    ASSERT_EQ(ToBfloat16(value), expected) << value;
    ASSERT_EQ(ToBfloat16(-value), expected | 0x8000u) << value;
  }
  EXPECT_EQ(FromBfloat16(ToBfloat16(kInfinity)), kInfinity);
  EXPECT_EQ(FromBfloat16(ToBfloat16(-kInfinity)), -kInfinity);
  EXPECT_EQ(FromBfloat16(ToBfloat16(std::numeric_limits<float>::max())), kInfinity);
}

TEST(Bfloat16, NoNanBecomesANumber) {
  for (uint32_t payload : {1u, 0x8000u, 0xffffu, 0x7fffffu, 0x400000u}) {
    for (uint32_t sign : {0u, 0x80000000u}) {
      EXPECT_TRUE(
          std::isnan(FromBfloat16(ToBfloat16(std::bit_cast<float>(sign | 0x7f800000u | payload)))));
    }
  }
}

TEST(Bfloat16, LoopsDoWhatTheFunctionsSay) {
  const Random random(2);
  for (size_t n : {0, 1, 3, 16, 31, 1009}) {
    std::vector<float> values(n), there(n), sums(n, 1.0f), settled;
    std::vector<uint16_t> packed(n);
    for (size_t i = 0; i < n; ++i) values[i] = float(random.Normal(i));
    if (n > 3) values[3] = std::numeric_limits<float>::quiet_NaN();
    settled = values;
    AsBfloat16::Pack(values.data(), packed.data(), n);
    AsBfloat16::Unpack(packed.data(), there.data(), n);
    AsBfloat16::Add(packed.data(), sums.data(), n);
    AsBfloat16::Settle(settled);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(packed[i], ToBfloat16(values[i]));
      if (i == 3) continue;
      EXPECT_EQ(there[i], FromBfloat16(packed[i]));
      EXPECT_EQ(settled[i], there[i]);
      EXPECT_EQ(sums[i], 1.0f + there[i]);
    }
  }
}

}  // namespace
}  // namespace trireme
