#pragma once
#include <cmath>
#include <string>

#include "report/page/page.h"

namespace trireme {

// Every kind of block, with names as an enemy would choose them.
inline Page NastyPage() {
  const std::string evil = "<script>alert(1)</script>\"'&\x01\xFF end";
  Page page{evil, evil, {}};
  LineChart line{evil, {evil, evil}, {evil, evil, true}, {}, evil};
  line.curves.push_back({evil, CurveKind::kMeasured, {1, 2, 3, 4}, {1, NAN, INFINITY, 2}, {}, {}});
  line.curves.push_back({"b", CurveKind::kPublished, {1, 2}, {3, 4}, {2, 3}, {4, NAN}});
  line.curves.push_back({"c", CurveKind::kPredicted, {}, {}, {}, {}});
  line.curves.push_back({"d", CurveKind::kIdeal, {1, 1e300}, {-1, 0}, {}, {}});
  BarChart bars{evil, {evil, evil}, {evil, "two"}, {evil, "q", "r"}, {}, evil, evil};
  bars.values = {{1, 2}, {NAN, -3}, {0.5, INFINITY}};
  HeatChart heat{evil, evil, evil, {evil, "y"}, {evil, "z", "w"}, {{1, 2, 3}, {0, NAN, 5}}, evil};
  PageTable table{evil, {evil, "n"}, {{evil, "1"}, {"", "-2.5"}}, evil};
  table.sortable = true;
  table.bold = {{0, 0}, {1, 1}, {7, 7}};
  table.styles = {2};
  const ChartChoice choice{{"<one>", "two"}, {LineChart{}, LineChart{}}};
  page.sections.push_back({"choice", {choice}});
  page.sections.insert(
      page.sections.begin(),
      {evil, {line, bars, heat, table, Paragraph{evil}, Commands{{evil, "trireme list"}}}});
  LineChart many{evil, {evil, evil}, {evil, evil}, {}, evil, false};
  many.curves.push_back({evil, CurveKind::kOther, {1, 2}, {1, 2}, {}, {}, 9});
  many.curves.push_back({evil, CurveKind::kMeasured, {1, 2}, {1, 2}, {}, {}, 2});
  page.sections.push_back(
      {evil, {Figures{{{evil, evil, evil}, {"1", "b"}}}, many}, /*folded=*/true});
  page.sections.push_back({"pictures", {Pictures{{{evil, evil, evil}, {"iVBORw0K", "b"}}, evil}}});
  page.sections.push_back(
      {"empty",
       {LineChart{}, BarChart{}, HeatChart{}, PageTable{}, ChartChoice{}, Figures{}, Pictures{}}});
  return page;
}

}  // namespace trireme
