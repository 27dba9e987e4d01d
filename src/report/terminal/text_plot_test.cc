#include "report/terminal/text_plot.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "report/page/testing.h"

namespace trireme {
namespace {

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

LineChart Falling() {
  LineChart chart{"Loss", {"step", ""}, {"loss", ""}, {}, ""};
  Curve train{"training", CurveKind::kMeasured, {0, 50, 100}, {10, 5, 0}, {}, {}};
  Curve test{"test", CurveKind::kMeasured, {100}, {10}, {}, {}};
  chart.curves = {train, test};
  return chart;
}

TEST(TextPlot, ACurveFallsFromTheUpperLeftToTheLowerRight) {
  const auto lines = TextLines(Falling(), {40, 8, false});
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[0], "loss: * training o test");
  EXPECT_TRUE(lines[1].starts_with("10 |*")) << lines[1];
  EXPECT_TRUE(lines[1].ends_with("o")) << lines[1];
  EXPECT_TRUE(lines[6].starts_with(" 0 |")) << lines[6];
  EXPECT_TRUE(lines[6].ends_with("*")) << lines[6];
  EXPECT_NE(lines[7].find("100"), std::string::npos) << lines[7];
  EXPECT_TRUE(lines[7].ends_with("  step")) << lines[7];
}

TEST(TextPlot, WithoutUnicodeItIsAscii) {
  for (const char c : Joined(TextLines(Falling(), {60, 12, false}))) EXPECT_LT(uint8_t(c), 0x80);
  EXPECT_NE(Joined(TextLines(Falling(), {60, 12, true})).find("\xE2\xA0"), std::string::npos);
  EXPECT_TRUE(IsUtf8(Joined(TextLines(Falling(), {60, 12, true}))));
}

TEST(TextPlot, AnyChartAndAnySizeCanBeDrawn) {
  const Page page = NastyPage();
  const auto& line = std::get<LineChart>(page.sections[0].blocks[0]);
  const auto& bars = std::get<BarChart>(page.sections[0].blocks[1]);
  for (const int width : {-5, 0, 1, 40, 300}) {
    for (const int height : {-1, 0, 7, 90}) {
      for (const bool unicode : {false, true}) {
        const TextStyle style{width, height, unicode};
        EXPECT_FALSE(TextLines(line, style).empty());
        EXPECT_FALSE(TextLines(LineChart{}, style).empty());
        EXPECT_GE(TextBars(bars, style).size(), 3u);
        EXPECT_EQ(TextBars(BarChart{}, style).size(), 1u);
      }
    }
  }
}

TEST(TextPlot, WhatTheLettersStandForFitsTheWidth) {
  const BarChart chart{"Where the time went",
                       {"time", "s"},
                       {"0"},
                       {"data", "forward", "backward", "communication waited for", "update"},
                       {{1}, {1}, {1}, {1}, {1}},
                       ""};
  const auto lines = TextBars(chart, {80, 0, false});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0],
            "Where the time went: d data f forward b backward c communication waited for");
  EXPECT_EQ(lines[1], "u update");
  EXPECT_LE(lines[2].size(), 80u);
}

TEST(TextPlot, PartsOfABarAreAsLongAsTheirShare) {
  const BarChart chart{"time", {"time", "s"}, {"0", "1"}, {"data", "forward"}, {{1, 1}, {1, 3}},
                       ""};
  const auto lines = TextBars(chart, {55, 0, false});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "time: d data f forward");
  EXPECT_EQ(lines[1], "0 " + std::string(10, 'd') + std::string(10, 'f') + " 2 s");
  EXPECT_EQ(lines[2], "1 " + std::string(10, 'd') + std::string(30, 'f') + " 4 s");
}

}  // namespace
}  // namespace trireme
