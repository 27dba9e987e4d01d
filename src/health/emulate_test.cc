#include "health/emulate.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace trireme {
namespace {

double SecondsOf(Pretence& pretence, double share = 1) {
  const Stopwatch watch;
  pretence.InForward(0, share);
  return watch.seconds();
}

TEST(Emulate, AStepTakesItsTimeLessWhatItComputed) {
  Pretence usual({.step_ms = 20, .slow = "1:3x"}, 0, 2),
      slow({.step_ms = 20, .slow = "1:3x"}, 1, 2);
  EXPECT_TRUE(usual.active());
  EXPECT_GE(SecondsOf(usual), 0.02);
  EXPECT_GE(SecondsOf(slow), 0.06);
  slow.Computed(0.05);
  EXPECT_GE(SecondsOf(slow), 0.01);
  EXPECT_GE(SecondsOf(usual, 2), 0.04);  // twice as many samples as another
  usual.Computed(1e9);                   // longer than the step shall take: no sleep, and no fault
  SecondsOf(usual);
}

TEST(Emulate, ASleepIsSpreadOverForwardAndBackward) {
  Pretence pretence({.step_ms = 20, .spread = true, .slow = "0:3x"}, 0, 2);
  pretence.InForward(0, 1);
  EXPECT_GE(pretence.Sleep(0.5), 0.03);
  EXPECT_GE(pretence.Sleep(0.5), 0.03);
  pretence.Computed(1e9);
  pretence.InForward(1, 1);
  EXPECT_EQ(pretence.Sleep(1), 0);
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

}  // namespace
}  // namespace trireme
