#include "model/mistakes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/label.h"
#include "base/random.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr int kClasses = 3, kSamples = 400, kChunk = 16;

struct Answers {
  std::vector<float> outputs, shares;
  std::vector<int32_t> labels;
};

// Shares are coarse, so that many are equal.
Answers Draw() {
  Answers answers;
  const Random random(3);
  for (int i = 0; i < kSamples; ++i) {
    answers.labels.push_back(int32_t(random.Bits(size_t(i)) % kClasses));
    float sum = 0;
    for (int c = 0; c < kClasses; ++c) {
      const size_t at = 1000 + size_t(i) * kClasses + size_t(c);
      answers.outputs.push_back(std::round(4 * float(random.Normal(at))) / 4);
      sum += std::exp(answers.outputs.back());
    }
    for (int c = 0; c < kClasses; ++c) {
      answers.shares.push_back(std::exp(answers.outputs[size_t(i * kClasses + c)]) / sum);
    }
  }
  return answers;
}

std::vector<Mistake> Find(const Answers& answers, int ranks) {
  std::vector<Mistake> found;
  RunRanks(ranks, 60, [&](World& world) {
    MistakeTally tally(kClasses, {});
    for (int begin = 0, turn = 0; begin < kSamples; begin += kChunk, ++turn) {
      if (turn % ranks != world.rank()) continue;
      tally.Add(begin,
                std::span(answers.outputs).subspan(size_t(begin) * kClasses, kChunk * kClasses),
                std::span(answers.shares).subspan(size_t(begin) * kClasses, kChunk * kClasses),
                std::span(answers.labels).subspan(size_t(begin), kChunk));
    }
    const auto result = tally.Result(&world.group());
    if (world.rank() == 0) found = result;
  });
  return found;
}

TEST(MistakeTally, FindsThoseThatALookAtAllFindsOnAnyNumberOfRanks) {
  const Answers answers = Draw();
  std::vector<Mistake> all;
  for (size_t i = 0; i < kSamples; ++i) {
    const auto begin = answers.outputs.begin() + ptrdiff_t(i) * kClasses;
    const auto said = std::max_element(begin, begin + kClasses) - begin;
    if (said == answers.labels[i]) continue;
    all.push_back({int64_t(i), double(answers.labels[i]), double(said),
                   answers.shares[i * kClasses + size_t(said)]});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Mistake& a, const Mistake& b) { return a.certainty > b.certainty; });
  ASSERT_GT(all.size(), MistakeTally::kKept);
  for (const int ranks : {1, 2, 3, 7}) {
    const auto found = Find(answers, ranks);
    ASSERT_EQ(found.size(), MistakeTally::kKept) << ranks;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].sample, all[i].sample) << ranks << " ranks, " << i;
      EXPECT_EQ(found[i].said, all[i].said);
      EXPECT_EQ(found[i].label, all[i].label);
      EXPECT_EQ(found[i].certainty, all[i].certainty);
    }
  }
}

TEST(MistakeTally, NumbersAreInTheirOwnUnit) {
  const TargetScale target{.mean = 100, .deviation = 10};
  MistakeTally tally(1, target);
  const std::vector<float> outputs = {1, -2, 0.5, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<int32_t> labels = {LabelOfNumber(1), LabelOfNumber(1), LabelOfNumber(0),
                                       LabelOfNumber(0)};
  tally.Add(40, outputs, outputs, labels);
  const auto found = tally.Result(nullptr);
  ASSERT_EQ(found.size(), 2u);  // the first is right, the last is no number
  EXPECT_EQ(found[0].sample, 41);
  EXPECT_EQ(found[0].label, 110);
  EXPECT_EQ(found[0].said, 80);
  EXPECT_EQ(found[0].certainty, 30);
  EXPECT_EQ(found[1].sample, 42);
  tally.Clear();
  EXPECT_TRUE(tally.Result(nullptr).empty());
}

}  // namespace
}  // namespace trireme
