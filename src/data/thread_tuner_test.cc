#include "data/thread_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trireme {
namespace {

// A stretch of 16 requests: computing takes 0.05 s each, fetching `fetch_s` by a thread, of which
// at most `useful` work side by side.
void Stretch(ThreadTuner& tuner, double fetch_s, int useful) {
  const double fetch = fetch_s / std::min(tuner.threads(), useful);
  const double seconds = 16 * std::max(0.05, fetch);
  tuner.Add(seconds, seconds - 16 * 0.05, 16);
}

TEST(ThreadTuner, FindsTheNumberThatHidesFetching) {
  for (const auto& [fetch, expected] :
       {std::pair(0.04, 1), std::pair(0.099, 2), std::pair(0.128, 3), std::pair(0.34, 7)}) {
    ThreadTuner tuner({1, 16});
    for (int i = 0; i < 4; ++i) Stretch(tuner, fetch, 16);
    EXPECT_EQ(tuner.threads(), expected) << fetch;
  }
}

TEST(ThreadTuner, StopsAtTheMost) {
  ThreadTuner tuner({1, 4});
  for (int i = 0; i < 4; ++i) Stretch(tuner, 1.0, 16);
  EXPECT_EQ(tuner.threads(), 4);
  EXPECT_TRUE(tuner.settled());
}

TEST(ThreadTuner, GoesBackWhereMoreDoNotHelp) {
  ThreadTuner tuner({1, 16});
  for (int i = 0; i < 6; ++i) Stretch(tuner, 0.3, 1);  // a disk that gives no more
  EXPECT_EQ(tuner.threads(), 1);
  EXPECT_TRUE(tuner.settled());
  Stretch(tuner, 0.3, 16);
  EXPECT_EQ(tuner.threads(), 1);
}

TEST(ThreadTuner, SeesWhenFetchingBecomesSlower) {
  ThreadTuner tuner({1, 16});
  for (int i = 0; i < 5; ++i) Stretch(tuner, 0.04, 16);
  EXPECT_EQ(tuner.threads(), 1);
  for (int i = 0; i < 5; ++i) Stretch(tuner, 0.099, 16);
  EXPECT_EQ(tuner.threads(), 2);
}

TEST(ThreadTuner, LeavesAGivenNumberAlone) {
  for (const int threads : {0, 1, 3}) {
    ThreadTuner tuner({threads, threads});
    EXPECT_TRUE(tuner.settled());
    tuner.Add(1, 0.9, 10);
    EXPECT_EQ(tuner.threads(), threads);
  }
}

}  // namespace
}  // namespace trireme
