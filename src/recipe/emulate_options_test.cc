#include "recipe/emulate_options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace trireme {
namespace {

TEST(EmulateOptions, SlowIsATimeOrAFactor) {
  EXPECT_FALSE(ParseSlow("", "emulate.slow", 4));
  const auto more = ParseSlow("3:40", "emulate.slow", 4);
  EXPECT_EQ(more->rank, 3);
  EXPECT_EQ(more->more_ms, 40);
  EXPECT_EQ(more->factor, 1);
  const auto times = ParseSlow("2:2.5x", "emulate.slow", 4);
  EXPECT_EQ(times->rank, 2);
  EXPECT_EQ(times->more_ms, 0);
  EXPECT_EQ(times->factor, 2.5);
  for (const char* bad : {"x", "3:x", ":3x", "4:3x", "-1:3x", "3:0.5x", "3:1e9x", "3:3:3x", "3"}) {
    EXPECT_THROW(ParseSlow(bad, "emulate.slow", 4), UsageError) << bad;
  }
}

TEST(EmulateOptions, IsTold) {
  EXPECT_TRUE(Emulated({}).empty());
  const auto told = Emulated({.step_ms = 2.5, .decode_ms = 4, .slow = "0:3x"});
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0], std::make_pair(std::string("step_ms"), std::string("2.5")));
  EXPECT_EQ(told[1], std::make_pair(std::string("decode_ms"), std::string("4")));
  EXPECT_EQ(told[2].second, "0:3x");
}

}  // namespace
}  // namespace trireme
