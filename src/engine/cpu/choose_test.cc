#include "engine/cpu/choose.h"

#include <gtest/gtest.h>

namespace trireme::cpu {
namespace {

ConvShape Square(size_t size, size_t in, size_t out, size_t kernel = 3, size_t stride = 1) {
  const size_t across = (size + stride - 1) / stride;
  return {size, size, in, across, across, out, kernel, stride, kernel / 2};
}

TEST(ChooseWinograd, TakesWhatIsAskedForWhereItCan) {
  const ConvShape shape = Square(8, 5, 7);
  EXPECT_EQ(ChooseWinograd("off", shape), 0);
  EXPECT_EQ(ChooseWinograd("f2", shape), 2);
  EXPECT_EQ(ChooseWinograd("f4", shape), 4);
  EXPECT_EQ(ChooseWinograd("f4", shape, /*bf16=*/true), 4);
  EXPECT_EQ(ChooseWinograd("auto", shape, /*bf16=*/true), 0);
}

TEST(ChooseWinograd, IsForThreeByThreeAtStrideOne) {
  for (const char* how : {"f2", "f4", "auto"}) {
    EXPECT_EQ(ChooseWinograd(how, Square(56, 64, 64, 1)), 0);
    EXPECT_EQ(ChooseWinograd(how, Square(56, 64, 64, 5)), 0);
    EXPECT_EQ(ChooseWinograd(how, Square(56, 64, 64, 3, 2)), 0);
  }
}

TEST(ChooseWinograd, FollowsTheWorkWhenItMayChoose) {
  EXPECT_EQ(ChooseWinograd({}, Square(56, 64, 64)), 4);
  EXPECT_EQ(ChooseWinograd({}, Square(28, 128, 128)), 4);
  EXPECT_EQ(ChooseWinograd({}, Square(224, 3, 64)), 0);   // turning costs more than it saves
  EXPECT_EQ(ChooseWinograd({}, Square(2, 512, 512)), 0);  // the kernels alone cost more
}

}  // namespace
}  // namespace trireme::cpu
