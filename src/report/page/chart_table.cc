#include "report/page/chart_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/plot/decimate.h"
#include "report/plot/svg.h"
#include "report/plot/ticks.h"

namespace trireme {
namespace {

constexpr size_t kMostPoints = 120;
constexpr size_t kMostColumns = 40;
constexpr size_t kMostCells = 1500;

std::string CellText(const std::vector<double>& values, size_t i) {
  return i < values.size() ? ValueText(values[i]) : "-";
}

// With the ends of its error bar, where there is one.
std::string PointText(const Curve& curve, size_t i) {
  std::string text = CellText(curve.y, i);
  if (i < curve.low.size() && i < curve.high.size()) {
    text += fmt::format(" ({} to {})", ValueText(curve.low[i]), ValueText(curve.high[i]));
  }
  return text;
}

void SayThinned(PageTable& table, size_t shown, size_t all, const char* what) {
  if (shown >= all) return;
  table.caption = fmt::format("{} of {} {}, evenly spaced", shown, ValueText(double(all)), what);
}

// One row per x, one column per curve: they are all measured at the same places.
PageTable SideBySide(const LineChart& chart) {
  PageTable table;
  table.header = {AxisText(chart.x)};
  for (const Curve& curve : chart.curves) table.header.push_back(curve.name);
  const auto& x = chart.curves.front().x;
  const size_t most = std::clamp<size_t>(kMostCells / chart.curves.size(), 8, kMostPoints);
  const auto rows = DecimateRows(x.size(), most);
  for (const size_t i : rows) {
    table.rows.push_back({ValueText(x[i])});
    for (const Curve& curve : chart.curves) table.rows.back().push_back(PointText(curve, i));
  }
  SayThinned(table, rows.size(), x.size(), "points");
  return table;
}

PageTable OneAfterTheOther(const LineChart& chart) {
  PageTable table;
  table.header = {"curve", AxisText(chart.x), AxisText(chart.y)};
  size_t all = 0;
  for (const Curve& curve : chart.curves) {
    const size_t most = std::max<size_t>(8, 2 * kMostPoints / chart.curves.size());
    all += curve.x.size();
    for (const size_t i : DecimateRows(curve.x.size(), most)) {
      table.rows.push_back({curve.name, ValueText(curve.x[i]), PointText(curve, i)});
    }
  }
  SayThinned(table, table.rows.size(), all, "points");
  return table;
}

}  // namespace

PageTable TableOf(const LineChart& chart) {
  if (chart.curves.empty()) return {};
  const auto same = [&](const Curve& curve) { return curve.x == chart.curves.front().x; };
  const bool together = std::all_of(chart.curves.begin(), chart.curves.end(), same);
  return together ? SideBySide(chart) : OneAfterTheOther(chart);
}

PageTable TableOf(const BarChart& chart) {
  PageTable table;
  table.header = {chart.bars_title.empty() ? AxisText(chart.y) : chart.bars_title};
  table.header.insert(table.header.end(), chart.parts.begin(), chart.parts.end());
  const auto rows = DecimateRows(chart.bars.size(), kMostPoints);
  for (const size_t bar : rows) {
    table.rows.push_back({chart.bars[bar]});
    for (size_t part = 0; part < chart.parts.size(); ++part) {
      table.rows.back().push_back(part < chart.values.size() ? CellText(chart.values[part], bar)
                                                             : "-");
    }
  }
  SayThinned(table, rows.size(), chart.bars.size(), "bars");
  return table;
}

PageTable TableOf(const HeatChart& chart) {
  PageTable table;
  const auto columns = DecimateRows(chart.columns.size(), kMostColumns);
  const auto rows = DecimateRows(chart.rows.size(), kMostColumns);
  table.header = {fmt::format("{} \\ {}", chart.row_title, chart.column_title)};
  for (const size_t c : columns) table.header.push_back(chart.columns[c]);
  for (const size_t r : rows) {
    table.rows.push_back({chart.rows[r]});
    for (const size_t c : columns) {
      table.rows.back().push_back(r < chart.values.size() ? CellText(chart.values[r], c) : "-");
    }
  }
  SayThinned(table, rows.size() * columns.size(), chart.rows.size() * chart.columns.size(),
             "cells");
  return table;
}

}  // namespace trireme
