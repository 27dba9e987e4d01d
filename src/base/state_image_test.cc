#include "base/state_image.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace trireme {
namespace {

StateImage Some() {
  StateImage image;
  const std::vector<int64_t> shape = {2, 3}, numbers = {7, -1};
  const std::vector<float> data = {1, 2, 3, 4, 5, 6};
  image.Tensor("velocity", shape, data);
  image.Int("step", 12);
  image.Ints("leases", numbers);
  image.Real("loss", 0.25);
  image.Text("why", "because");
  return image;
}

void ExpectSome(const StateImage& image) {
  const std::vector<int64_t> shape = {2, 3};
  std::vector<float> data(6);
  image.Tensor("velocity", shape, data);
  EXPECT_EQ(data, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(image.Shape("velocity"), shape);
  EXPECT_EQ(image.TensorNames(), std::vector<std::string>{"velocity"});
  EXPECT_EQ(image.Int("step"), 12);
  EXPECT_EQ(image.Ints("leases"), (std::vector<int64_t>{7, -1}));
  EXPECT_EQ(image.Real("loss"), 0.25);
  EXPECT_EQ(image.Text("why"), "because");
}

TEST(StateImageTest, ReadsWhatWasSaved) { ExpectSome(Some()); }

TEST(StateImageTest, WritesAllOfItInOrder) {
  StateImage copy;
  Some().WriteTo(copy);
  ExpectSome(copy);
  EXPECT_EQ(copy.entries().front().name, "velocity");
  EXPECT_EQ(copy.entries().back().name, "why");
}

TEST(StateImageTest, WhatIsSavedAgainReplaces) {
  StateImage image = Some();
  image.Int("step", 13);
  EXPECT_EQ(image.Int("step"), 13);
  EXPECT_EQ(image.entries().size(), 5u);
}

TEST(StateImageTest, SaysWhatIsMissingOrDoesNotFit) {
  const StateImage image = Some();
  const int64_t six = 6;
  std::vector<float> data(6);
  EXPECT_FALSE(image.Has("steps"));
  EXPECT_THROW(image.Int("steps"), Error);
  EXPECT_THROW(image.Int("loss"), Error);
  EXPECT_THROW(image.Tensor("velocity", {&six, 1}, data), Error);
  EXPECT_THROW(image.Tensor("step", {&six, 1}, data), Error);
}

}  // namespace
}  // namespace trireme
