#include "model/roc_tally.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "launch/shm_run.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

// Scores as a network gives them; some are equal, `coarse` makes many so.
struct Scored {
  int classes;
  std::vector<float> scores;
  std::vector<int32_t> labels;
};

Scored Sample(int classes, int samples, bool coarse, uint64_t seed) {
  Scored scored{classes, {}, {}};
  const Random random(seed);
  uint64_t at = 0;
  for (int i = 0; i < samples; ++i) {
    const auto label = int32_t(random.Bits(at++) % uint64_t(classes));
    scored.labels.push_back(label);
    std::vector<double> e;
    double sum = 0;
    for (int c = 0; c < classes; ++c) {
      e.push_back(std::exp(3 * random.Normal(at++) + (c == label ? 4 : 0)));
      sum += e.back();
    }
    for (const double x : e) {
      const double p = x / sum;
      scored.scores.push_back(float(coarse ? std::round(8 * p) / 8 : p));
    }
  }
  return scored;
}

// Every pair of a positive and a negative.
double BruteForce(const Scored& scored, int wanted) {
  double wins = 0, pairs = 0;
  const auto score = [&](size_t i) { return scored.scores[i * size_t(scored.classes) + wanted]; };
  for (size_t i = 0; i < scored.labels.size(); ++i) {
    for (size_t j = 0; scored.labels[i] == wanted && j < scored.labels.size(); ++j) {
      if (scored.labels[j] == wanted) continue;
      wins += score(i) > score(j) ? 1 : score(i) == score(j) ? 0.5 : 0;
      ++pairs;
    }
  }
  return wins / pairs;
}

// Every threshold.
void ExpectCurve(const Scored& scored, int wanted, const Roc& roc) {
  for (size_t p = 0; p < roc.false_positive_rate.size(); ++p) {
    bool found = p == 0;
    for (size_t i = 0; !found && i < scored.labels.size(); ++i) {
      const float threshold = scored.scores[i * size_t(scored.classes) + wanted];
      double hits = 0, alarms = 0;
      for (size_t j = 0; j < scored.labels.size(); ++j) {
        if (scored.scores[j * size_t(scored.classes) + wanted] < threshold) continue;
        ++(scored.labels[j] == wanted ? hits : alarms);
      }
      found = std::abs(hits / double(roc.positives) - roc.true_positive_rate[p]) < 1e-12 &&
              std::abs(alarms / double(roc.negatives) - roc.false_positive_rate[p]) < 1e-12;
    }
    EXPECT_TRUE(found) << "class " << wanted << ", point " << p;
  }
}

// The samples in chunks of 7, every n-th of them on each of n ranks.
RocTally TallyOf(const Scored& scored, int rank, int ranks, int64_t exact_scores,
                 int64_t expected = 0) {
  const size_t samples = scored.labels.size(), classes = size_t(scored.classes);
  RocTally tally(scored.classes, expected ? expected : int64_t(samples), exact_scores);
  for (size_t chunk = size_t(rank); chunk * 7 < samples; chunk += size_t(ranks)) {
    const size_t count = std::min<size_t>(7, samples - chunk * 7);
    tally.Add(std::span(scored.scores).subspan(chunk * 7 * classes, count * classes),
              std::span(scored.labels).subspan(chunk * 7, count));
  }
  return tally;
}

constexpr int64_t kExact = RocTally::kExactScores;

TEST(RocTally, EqualsComparingAllPairs) {
  for (const int classes : {2, 3, 10}) {
    for (const bool coarse : {false, true}) {
      const Scored scored = Sample(classes, 150, coarse, uint64_t(classes));
      const RocCurves curves = TallyOf(scored, 0, 1, kExact).Result(nullptr);
      ASSERT_EQ(curves.classes.size(), size_t(classes));
      EXPECT_EQ(curves.bins, 0);
      for (int c = 0; c < classes; ++c) {
        EXPECT_NEAR(*curves.classes[size_t(c)].auc, BruteForce(scored, c), 1e-12);
        ExpectCurve(scored, c, curves.classes[size_t(c)]);
      }
    }
  }
}

TEST(RocTally, AHistogramIsOffByNoMoreThanItSays) {
  for (const int classes : {2, 3, 10, 1000}) {
    const Scored scored = Sample(classes, classes == 1000 ? 40 : 400, false, 7);
    const RocCurves curves = TallyOf(scored, 0, 1, 0).Result(nullptr);
    EXPECT_GT(curves.bins, 0);
    EXPECT_LE(2 * curves.bins * classes, 1 << 23) << "memory is bounded";
    for (int c = 0; c < classes; ++c) {
      const Roc& roc = curves.classes[size_t(c)];
      if (!roc.auc) continue;
      EXPECT_LE(std::abs(*roc.auc - BruteForce(scored, c)), roc.auc_error + 1e-12);
      EXPECT_LE(roc.auc_error, classes == 1000 ? 0.05 : 0.001);
    }
  }
}

void ExpectSame(const RocCurves& a, const RocCurves& b) {
  ASSERT_EQ(a.classes.size(), b.classes.size());
  EXPECT_EQ(a.bins, b.bins);
  for (size_t c = 0; c < a.classes.size(); ++c) {
    EXPECT_EQ(a.classes[c].positives, b.classes[c].positives);
    EXPECT_EQ(a.classes[c].auc, b.classes[c].auc);  // to the bit
    EXPECT_EQ(a.classes[c].auc_error, b.classes[c].auc_error);
    EXPECT_EQ(a.classes[c].false_positive_rate, b.classes[c].false_positive_rate);
    EXPECT_EQ(a.classes[c].true_positive_rate, b.classes[c].true_positive_rate);
  }
}

TEST(RocTally, RanksShareTheSamplesToTheBit) {
  for (const int64_t exact_scores : {kExact, int64_t{0}}) {
    const Scored scored = Sample(5, 311, true, 11);
    const RocCurves alone = TallyOf(scored, 0, 1, exact_scores).Result(nullptr);
    const auto check = [&](World& world) {
      const RocCurves together =
          TallyOf(scored, world.rank(), world.size(), exact_scores).Result(&world.group());
      if (world.rank() == 0) {
        ExpectSame(together, alone);
      } else {
        EXPECT_TRUE(together.classes.empty());
      }
      return testing::Test::HasFailure() ? 1 : 0;  // of a process: the only thing that comes back
    };
    for (const int ranks : {1, 2, 3}) {
      RunRanks(ranks, 60, [&](World& world) { check(world); });
      EXPECT_EQ(RunShm({.ranks = ranks}, check), 0);
    }
  }
}

TEST(RocTally, PartsMakeTheWhole) {
  const Scored scored = Sample(4, 200, false, 13);
  for (const int64_t exact_scores : {kExact, int64_t{400}, int64_t{0}}) {
    RocTally pool(4, 200, exact_scores);  // 400: the parts are exact, the whole is not
    for (int part = 0; part < 3; ++part) pool.Add(TallyOf(scored, part, 3, exact_scores, 70));
    ExpectSame(pool.Result(nullptr), TallyOf(scored, 0, 1, exact_scores).Result(nullptr));
  }
}

TEST(RocTally, WhatIsNoNumberStandsBelowAll) {
  RocTally tally(2, 4);
  const float scores[] = {NAN, 1, -INFINITY, 1, 0.0f, 1, -0.0f, 1};
  const int32_t labels[] = {0, 0, 1, 1};
  tally.Add(scores, labels);
  const RocCurves curves = tally.Result(nullptr);
  EXPECT_EQ(curves.classes[0].auc, 0.0);  // nan, -inf below 0 and -0
  EXPECT_EQ(curves.classes[1].auc, 0.5);
}

TEST(RocTally, HigherScoresHaveNoLowerBin) {
  std::vector<float> scores = {-INFINITY, -1e30f, -300, -1, -1e-3f, -1e-30f, 0, 1e-30f, 1e-9f};
  for (int i = 1; i < 1000; ++i) scores.push_back(float(i) / 1000);
  for (const float above : {1 - 0x1p-24f, 1.0f, 1 + 0x1p-23f, 1.5f, 2.0f, 257.0f, 1e30f}) {
    scores.push_back(above);
  }
  scores.push_back(INFINITY);
  for (const int fineness : {0, 3, 12}) {
    int64_t last = RocTally::BinOf(NAN, fineness);
    EXPECT_EQ(last, 0);
    for (const float score : scores) {
      const int64_t bin = RocTally::BinOf(score, fineness);
      EXPECT_GE(bin, last) << score;
      EXPECT_LT(bin, RocTally::BinsOf(fineness)) << score;
      last = bin;
    }
    EXPECT_EQ(last, RocTally::BinsOf(fineness) - 1);
  }
  EXPECT_NE(RocTally::BinOf(1 - 0x1p-24f, 0), RocTally::BinOf(1, 0));
}

}  // namespace
}  // namespace trireme
