#include "report/plot/ticks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace trireme {
namespace {

using Values = std::vector<double>;

std::vector<std::string> Texts(const Values& values, bool log = false, bool zero = true) {
  return TickTexts(MakeScale(values, log, zero, 5));
}
using Words = std::vector<std::string>;

TEST(Ticks, AreRoundNumbers) {
  EXPECT_EQ(Texts({0.1, 0.93}), (Words{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(Texts({3, 97}), (Words{"0", "20", "40", "60", "80", "100"}));
  EXPECT_EQ(Texts({0, 100000}), (Words{"0", "20k", "40k", "60k", "80k", "100k"}));
  EXPECT_EQ(Texts({0.91, 0.94}, false, false), (Words{"0.91", "0.92", "0.93", "0.94"}));
  EXPECT_EQ(Texts({1, 2, 4}, false, false), (Words{"1", "2", "3", "4"}));  // ranks: no halves
}

TEST(Ticks, OfALogarithmicAxisArePowers) {
  EXPECT_EQ(Texts({1, 2, 4, 16}, true), (Words{"1", "2", "4", "8", "16"}));
  EXPECT_EQ(Texts({1e-4, 1}, true), (Words{"0.0001", "0.001", "0.01", "0.1", "1"}));
  EXPECT_EQ(Texts({3, 7}, true), (Words{"2", "5", "10"}));
}

TEST(Ticks, AnAxisMayEndWhereItsValuesDo) {
  AxisScale steps = MakeScale(Values{0, 930}, false, true, 5);
  EXPECT_EQ(steps.end, 1000);
  steps.EndAt(Values{0, 930});
  EXPECT_EQ(steps.end, 930);
  EXPECT_EQ(steps.ticks.back(), 800);
  AxisScale nodes = MakeScale(Values{3, 70}, true, true, 5);
  EXPECT_EQ(nodes.begin, 2);
  nodes.EndAt(Values{3, 70});
  EXPECT_EQ(nodes.begin, 3);
  EXPECT_EQ(nodes.end, 70);
}

TEST(Ticks, WhateverTheValuesTheAxisHoldsThemAndNamesAFew) {
  std::mt19937_64 random(1);
  const double special[] = {NAN,  INFINITY, -INFINITY, 0,     -0.0,   1e308, -1e308, 5e-324,
                            1e-9, 1,        1e15,      1e149, -1e149, 3,     1e-149};
  for (int round = 0; round < 20000; ++round) {
    Values values(random() % 6);
    for (double& v : values) {
      v = random() % 2 ? special[random() % std::size(special)]
                       : std::ldexp(double(random()) - 9e18, int(random() % 200) - 100);
    }
    const bool log = random() % 2;
    AxisScale scale = MakeScale(values, log, random() % 2, 2 + int(random() % 9));
    if (random() % 2) scale.EndAt(values);
    ASSERT_LT(scale.begin, scale.end);
    ASSERT_LE(scale.ticks.size(), 22u);
    ASSERT_EQ(TickTexts(scale).size(), scale.ticks.size());
    for (const double v : values) {
      if (!Drawable(v, log)) continue;
      ASSERT_GE(scale.Place(v), -1e-6) << v << " in " << scale.begin << ".." << scale.end;
      ASSERT_LE(scale.Place(v), 1 + 1e-6) << v << " in " << scale.begin << ".." << scale.end;
    }
    for (size_t i = 1; i < scale.ticks.size(); ++i) ASSERT_LT(scale.ticks[i - 1], scale.ticks[i]);
  }
}

TEST(Ticks, ValuesAreShort) {
  EXPECT_EQ(ValueText(100000), "100,000");
  EXPECT_EQ(ValueText(0.123456789), "0.12346");
  EXPECT_EQ(ValueText(1348730.25), "1,348,730");
  EXPECT_EQ(ValueText(NAN), "-");
  EXPECT_EQ(ValueText(std::numeric_limits<double>::max()), "1.7977e+308");
}

}  // namespace
}  // namespace trireme
