#include "trainer/emulate.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"

namespace trireme {
namespace {

double SecondsOf(const Pretence& pretence) {
  const Stopwatch watch;
  pretence.InForward(0);
  return watch.seconds();
}

TEST(Emulate, SlowIsATimeOrAFactor) {
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

TEST(Emulate, AStepTakesItsTimeLessWhatItComputed) {
  Pretence usual({.step_ms = 20, .slow = "1:3x"}, 0, 2),
      slow({.step_ms = 20, .slow = "1:3x"}, 1, 2);
  EXPECT_TRUE(usual.active());
  EXPECT_GE(SecondsOf(usual), 0.02);
  EXPECT_GE(SecondsOf(slow), 0.06);
  slow.Computed(0.05);
  EXPECT_GE(SecondsOf(slow), 0.01);
  usual.Computed(1e9);  // longer than the step shall take: no sleep, and no fault
  SecondsOf(usual);
}

TEST(Emulate, SlowAloneIsOnTopOfComputing) {
  Pretence slow({.slow = "0:15"}, 0, 2);
  slow.Computed(1);
  EXPECT_GE(SecondsOf(slow), 0.015);
  EXPECT_FALSE(Pretence({.slow = "0:15"}, 1, 2).active());
  Pretence times({.slow = "0:3x"}, 0, 2);
  EXPECT_TRUE(times.active());
  times.Computed(0.01);
  EXPECT_GE(SecondsOf(times), 0.02);
}

TEST(Emulate, IsTold) {
  EXPECT_TRUE(Emulated({}).empty());
  const auto told = Emulated({.step_ms = 2.5, .decode_ms = 4, .slow = "0:3x"});
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0], std::make_pair(std::string("step_ms"), std::string("2.5")));
  EXPECT_EQ(told[1], std::make_pair(std::string("decode_ms"), std::string("4")));
  EXPECT_EQ(told[2].second, "0:3x");
}

}  // namespace
}  // namespace trireme
