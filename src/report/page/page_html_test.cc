#include "report/page/page_html.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "report/page/testing.h"
#include "report/plot/svg.h"

namespace trireme {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

LineChart LongChart(size_t points) {
  LineChart chart{"loss", {"step", ""}, {"loss", ""}, {}, ""};
  Curve curve{"a", CurveKind::kMeasured, {}, {}, {}, {}};
  for (size_t i = 0; i < points; ++i) {
    curve.x.push_back(double(i));
    curve.y.push_back(3 / (1 + double(i) * 1e-3) + 0.2 * std::sin(double(i * i % 1009)));
  }
  chart.curves = {curve, curve};
  return chart;
}

TEST(PageHtml, NothingOfANameIsMarkup) {
  const std::string html = PageHtml(NastyPage());
  EXPECT_TRUE(IsUtf8(html));
  EXPECT_GT(Count(html, "&lt;script&gt;alert(1)"), 20u);
  EXPECT_EQ(Count(html, "<script>alert"), 0u);
  EXPECT_EQ(Count(html, "\"'&"), 0u);
  EXPECT_EQ(Count(html, "<script"), 1u);  // our own
  EXPECT_EQ(html.find('\x01'), html.npos);
  EXPECT_EQ(html.find("nan"), html.npos);
  EXPECT_EQ(html.find("inf,"), html.npos);
}

TEST(PageHtml, FetchesNothing) {
  const std::string html = PageHtml(NastyPage());
  EXPECT_GT(Count(html, "src="), 0u);
  EXPECT_EQ(Count(html, "src="), Count(html, "src=\"data:image/png;base64,"));
  EXPECT_EQ(html.find("fetch("), html.npos);
  EXPECT_EQ(html.find("@import"), html.npos);
  EXPECT_EQ(Count(html, "http://"), Count(html, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(html.find("https://"), html.npos);
}

TEST(PageHtml, AHundredThousandPointsStaySmall) {
  Page page{"long", "", {{"", {}}}};
  for (int i = 0; i < 12; ++i) page.sections[0].blocks.push_back(LongChart(100000));
  const std::string html = PageHtml(page);
  EXPECT_LT(html.size(), size_t{2} << 20);
  EXPECT_NE(html.find("120 of 100,000 points"), html.npos);
}

TEST(PageHtml, TheChoiceStandsOnceAndSoDoesACommonLegend) {
  ChartChoice choice{{"steps", "time"}, {LongChart(3), LongChart(3)}};
  Section own{"Learning", {choice, choice}}, common = own;
  std::string html = PageContent({"", "", {own}});
  EXPECT_EQ(Count(html, "class=\"tabs\""), 1u);
  EXPECT_EQ(Count(html, ">steps</button>"), 1u);
  EXPECT_EQ(Count(html, "<ul class=\"legend\">"), 4u);
  EXPECT_LT(html.find("<h2>Learning</h2>"), html.find("class=\"tabs\""));
  for (Block& block : common.blocks) {
    for (LineChart& chart : std::get<ChartChoice>(block).charts) {
      chart.own_legend = false;
      chart.curves[0].style = 3;
      chart.curves[1].style = kOtherStyles;
      chart.curves[1].kind = CurveKind::kOther;
    }
  }
  html = PageContent({"", "", {common}});
  EXPECT_EQ(Count(html, "class=\"legend"), 1u);
  EXPECT_NE(html.find("1 others"), html.npos);
  EXPECT_EQ(Count(html, "as a table"), 2u);  // once for each choice
}

TEST(PageHtml, CardsFillTheirRows) {
  const auto widths = [](size_t charts) {
    const Section section{"", std::vector<Block>(charts, LongChart(3))};
    const std::string html = PageContent({"", "", {section}});
    std::string found;
    for (size_t at = 0; (at = html.find("<div class=\"w", at)) != html.npos; ++at) {
      found += html[at + 13];
    }
    return found;
  };
  EXPECT_EQ(widths(1), "6");
  EXPECT_EQ(widths(2), "33");
  EXPECT_EQ(widths(3), "222");
  EXPECT_EQ(widths(4), "3333");
  EXPECT_EQ(widths(5), "22233");
  EXPECT_EQ(widths(7), "2223333");
}

TEST(PageHtml, TheBestCellsAreBoldAndRowsKnowTheirCurves) {
  PageTable table{"", {"run", "accuracy"}, {{"a", "1"}, {"b", "2"}}, ""};
  table.bold = {{1, 1}};
  table.sortable = true;
  table.styles = {4, kOtherStyles};
  const std::string html = PageContent({"", "", {{"", {table}}}});
  EXPECT_EQ(Count(html, "<td class=\"b\">2</td>"), 1u);
  EXPECT_EQ(Count(html, "class=\"sort\""), 2u);
  EXPECT_EQ(Count(html, "<tr data-r=\"4\">"), 1u);
  const std::string figures =
      PageContent({"", "", {{"", {Figures{{{"97.78 %", "test accuracy", "best: 98 %"}}}}}}});
  EXPECT_NE(figures.find("<dt>test accuracy</dt><dd>97.78 %</dd>"), figures.npos);
}

TEST(PageHtml, BarsLieAndTheirNamesAreWhole) {
  const std::string name = "a-third-with-a-name-that-is-rather-long r0";
  const std::string svg = BarSvg({"time", {"time", "s"}, {name, "b"}, {"p"}, {{1, 2}}, "", "run"});
  EXPECT_NE(svg.find(">" + name + "</text>"), svg.npos);
  EXPECT_EQ(svg.find("rotate"), svg.npos);
}

TEST(PageHtml, AnEmptyChartSaysSo) {
  EXPECT_NE(LineSvg(LineChart{}).find("no values"), std::string::npos);
}

TEST(PageHtml, ThousandsOfBarsAndClassesAreThinned) {
  BarChart bars{"time", {"time", "s"}, {}, {"a"}, {{}}, ""};
  HeatChart heat{"confusion", "true", "predicted", {}, {}, {}, ""};
  for (int i = 0; i < 1000; ++i) {
    bars.bars.push_back("r" + std::to_string(i));
    bars.values[0].push_back(i);
    heat.rows.push_back("class " + std::to_string(i));
    heat.values.emplace_back(1000, 1.0);
  }
  heat.columns = heat.rows;
  EXPECT_NE(BarSvg(bars).find("80 of 1000 bars"), std::string::npos);
  EXPECT_NE(HeatSvg(heat).find("the sum of 20 x 20"), std::string::npos);
  EXPECT_LT(PageHtml({"", "", {{"", {bars, heat}}}}).size(), size_t{1} << 20);
}

TEST(PageHtml, TextIsShortenedWithinItsCharacters) {
  const std::string shortened = ShortenText(
      "\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F\xE2\x82\xAC"
      "abcdefgh",
      50, 10);
  EXPECT_TRUE(IsUtf8(shortened));
  EXPECT_LE(TextWidth(shortened, 10), 50);
  const std::string middle = ShortenText("run-of-monday-a1", 60, 10, true);
  EXPECT_TRUE(middle.starts_with("run")) << middle;
  EXPECT_TRUE(middle.ends_with("1")) << middle;
  EXPECT_EQ(ShortenText("short", 100, 10), "short");
}

}  // namespace
}  // namespace trireme
