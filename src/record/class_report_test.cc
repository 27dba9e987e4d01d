#include "record/class_report.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace trireme {
namespace {

// Class 1 has no samples but was predicted once; nothing was taken for class 3.
TEST(ClassReport, WhatIsAShareOfNothingIsNothing) {
  const auto scores = ScoresOf({{3, 1, 0, 0}, {0, 0, 0, 0}, {1, 0, 3, 0}, {0, 0, 2, 0}});
  EXPECT_EQ(scores[0].samples, 4);
  EXPECT_EQ(scores[0].precision, 0.75);
  EXPECT_EQ(scores[0].recall, 0.75);
  EXPECT_EQ(scores[0].f1, 0.75);
  EXPECT_EQ(scores[1].samples, 0);
  EXPECT_EQ(scores[1].precision, 0.0);
  EXPECT_FALSE(scores[1].recall);
  EXPECT_EQ(scores[1].f1, 0.0);
  EXPECT_FALSE(scores[3].precision);
  EXPECT_EQ(scores[3].recall, 0.0);
  EXPECT_EQ(scores[3].f1, 0.0);
  const MacroScore macro = MacroOf(scores);
  EXPECT_DOUBLE_EQ(*macro.precision, (0.75 + 0.6 + 0) / 3);
  EXPECT_DOUBLE_EQ(*macro.recall, (0.75 + 0.75 + 0) / 3);
  EXPECT_DOUBLE_EQ(*macro.f1, (0.75 + 2 / (1 / 0.6 + 1 / 0.75) + 0) / 3);
  EXPECT_FALSE(MacroOf({}).f1);
  EXPECT_FALSE(MacroOf(ScoresOf({{0, 0}, {0, 0}})).recall);
}

// Sample by sample, as the definitions say.
TEST(ClassReport, EqualsCountingSamples) {
  const Random random(5);
  for (int round = 0; round < 20; ++round) {
    const int classes = 2 + round % 6;
    std::vector<std::pair<int, int>> samples;  // truth, prediction
    const auto n = size_t(classes);
    Confusion confusion(n, std::vector<int64_t>(n));
    for (int i = 0; i < 50; ++i) {
      const uint64_t bits = random.Bits(uint64_t(100 * round + i));
      samples.emplace_back(int(bits % uint64_t(classes)), int((bits >> 32) % uint64_t(classes)));
      ++confusion[size_t(samples.back().first)][size_t(samples.back().second)];
    }
    const auto scores = ScoresOf(confusion);
    for (int c = 0; c < classes; ++c) {
      double hits = 0, truths = 0, taken = 0;
      for (const auto& [truth, said] : samples) {
        hits += truth == c && said == c;
        truths += truth == c;
        taken += said == c;
      }
      const ClassScore& score = scores[size_t(c)];
      EXPECT_NEAR(score.precision.value_or(0), taken > 0 ? hits / taken : 0, 1e-12);
      EXPECT_NEAR(score.recall.value_or(0), truths > 0 ? hits / truths : 0, 1e-12);
      if (hits > 0) {
        const double p = hits / taken, r = hits / truths;
        EXPECT_NEAR(*score.f1, 2 * p * r / (p + r), 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace trireme
