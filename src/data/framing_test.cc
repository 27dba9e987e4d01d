#include "data/framing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace trireme {
namespace {

bool Inside(const Box& box, PictureSize size) {
  return box.left >= 0 && box.top >= 0 && box.width > 0 && box.height > 0 &&
         box.left + box.width <= size.width && box.top + box.height <= size.height;
}

TEST(Framing, TheCentreIsASquareInTheMiddle) {
  EXPECT_EQ(ChooseView({}, {500, 300}, 0.8).box, (Box{130, 30, 240, 240}));
  EXPECT_EQ(ChooseView({}, {300, 500}, 1).box, (Box{0, 100, 300, 300}));
  EXPECT_EQ(ChooseView({}, {1, 1}, 0.01).box, (Box{0, 0, 1, 1}));
  EXPECT_FALSE(ChooseView({}, {9, 9}, 1).mirrored);
  EXPECT_TRUE(ChooseView({.mirrored = true}, {9, 9}, 1).mirrored);
}

TEST(Framing, RandomPartsLieInsideAndHaveTheirAreaAndShape) {
  const PictureSize size = {500, 333};
  double areas = 0, lefts = 0, shapes = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const Box box = ChooseView({.least_area = 0.25, .key = Hash(i)}, size, 1).box;
    ASSERT_TRUE(Inside(box, size));
    const double share = double(box.width) * box.height / (500 * 333);
    const double shape = double(box.width) / box.height;
    EXPECT_GT(share, 0.24);
    EXPECT_GT(shape, 0.74);
    EXPECT_LT(shape, 1.35);
    areas += share;
    shapes += std::log(shape);
    if (box.width < 500) lefts += double(box.left) / (500 - box.width);
  }
  // Of shape s (width by height) a part has at most s * 333 / 500 of the area, so it is drawn
  // again with some probability: the mean is that of the truncated distribution.
  double weights = 0, expected = 0;
  for (double s = 0.7505; s < 1.3333; s *= 1.001) {
    const double most = s * 333 / 500;
    weights += most - 0.25;
    expected += (most - 0.25) * (most + 0.25) / 2;
  }
  EXPECT_NEAR(areas / kDraws, expected / weights, 0.015);
  EXPECT_GT(shapes / kDraws, 0);  // wide parts of a wide picture fit more often
  EXPECT_NEAR(lefts / kDraws, 0.5, 0.03);
}

TEST(Framing, OddSizesHaveAView) {
  for (const PictureSize size : {PictureSize{1, 1}, {1, 5000}, {5000, 1}, {2, 3}, {65'000, 2000}}) {
    for (uint64_t key = 0; key < 200; ++key) {
      EXPECT_TRUE(Inside(ChooseView({.least_area = 0.08, .key = key}, size, 1).box, size));
    }
  }
}

}  // namespace
}  // namespace trireme
