#include "base/denormals.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace trireme {
namespace {

float Halve(float x) {
  volatile float y = x;
  y = y * 0.5f;
  return y;
}

TEST(DenormalsOff, HoldsWhileItLivesAndForThreadsStartedMeanwhile) {
  constexpr float kLeast = std::numeric_limits<float>::min();
  EXPECT_GT(Halve(kLeast), 0.0f);
#if defined(__x86_64__) || defined(__aarch64__)
  {
    const DenormalsOff off;
    EXPECT_EQ(Halve(kLeast), 0.0f);
    float on_thread = 1;
    std::thread([&] { on_thread = Halve(kLeast); }).join();
    EXPECT_EQ(on_thread, 0.0f);
  }
#endif
  EXPECT_GT(Halve(kLeast), 0.0f);
}

}  // namespace
}  // namespace trireme
