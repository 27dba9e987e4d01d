#include <algorithm>
#include <cmath>

#include "report/plot/svg.h"
#include "report/plot/svg_parts.h"

namespace trireme {
namespace {

constexpr size_t kMostCellsInARow = 50;  // more are added up
constexpr double kCountSize = 11;
constexpr double kLabelWidth = 110;

// The matrix in at most kMostCellsInARow rows and columns, each the sum of `block` of them.
struct Cells {
  size_t block = 1;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;
  double most = 0;
  double widest = 0;  // of the numbers as text
};

std::vector<std::string> BlockNames(const std::vector<std::string>& names, size_t block) {
  std::vector<std::string> out;
  for (size_t i = 0; i < names.size(); i += block) {
    const size_t last = std::min(names.size(), i + block) - 1;
    out.push_back(last == i ? names[i] : names[i] + " \xE2\x80\xA6 " + names[last]);
  }
  return out;
}

Cells CellsOf(const HeatChart& chart) {
  Cells cells;
  const size_t longest = std::max(chart.rows.size(), chart.columns.size());
  cells.block = std::max<size_t>(1, (longest + kMostCellsInARow - 1) / kMostCellsInARow);
  cells.rows = BlockNames(chart.rows, cells.block);
  cells.columns = BlockNames(chart.columns, cells.block);
  cells.values.assign(cells.rows.size(), std::vector<double>(cells.columns.size(), 0));
  for (size_t r = 0; r < std::min(chart.rows.size(), chart.values.size()); ++r) {
    for (size_t c = 0; c < std::min(chart.columns.size(), chart.values[r].size()); ++c) {
      const double value = chart.values[r][c];
      double& sum = cells.values[r / cells.block][c / cells.block];
      if (Drawable(value) && value > 0) sum += value;
      cells.most = std::max(cells.most, sum);
    }
  }
  for (const auto& row : cells.values) {
    for (const double value : row) {
      cells.widest = std::max(cells.widest, TextWidth(ValueText(value), kCountSize));
    }
  }
  return cells;
}

// Small counts must be seen beside large ones: the errors are what one looks for.
double Strength(double value, double most) { return most > 0 ? std::sqrt(value / most) : 0; }

struct HeatBox {
  PlotBox box;
  double cell_width = 0, cell_height = 0;
  bool upwards = false;  // the columns' names
};

HeatBox PlaceCells(const Cells& cells) {
  HeatBox place;
  double row_width = 0, column_width = 0;
  for (const auto& name : cells.rows) row_width = std::max(row_width, TextWidth(name, kTextSize));
  for (const auto& name : cells.columns) {
    column_width = std::max(column_width, TextWidth(name, kTextSize));
  }
  row_width = std::min(row_width, kLabelWidth);
  place.box.left = row_width + 12;
  place.box.width = kChartWidth - place.box.left - 8;
  place.cell_width = place.box.width / double(std::max<size_t>(1, cells.columns.size()));
  place.upwards = column_width + 6 > place.cell_width;
  place.box.top = 26 + (place.upwards ? std::min(column_width, kLabelWidth) + 16 : 24);
  const double rows = double(std::max<size_t>(1, cells.rows.size()));
  place.cell_height = std::clamp(place.cell_width * 0.8, 5.0, 34.0);
  place.box.height = place.cell_height * rows;
  return place;
}

void PutHeatLabels(std::string& out, const Cells& cells, const HeatBox& place) {
  const PlotBox& box = place.box;
  const size_t rows_every = size_t(std::ceil((kTextSize + 2) / place.cell_height));
  for (size_t r = 0; r < cells.rows.size(); r += rows_every) {
    const double y = box.top + (double(r) + 0.5) * place.cell_height + 4.5;
    Put(out, "<text class=\"tick e\" x=\"{}\" y=\"{}\">{}</text>", Px(box.left - 6), Px(y),
        EscapeHtml(ShortenText(cells.rows[r], kLabelWidth, kTextSize)));
  }
  const double needed = place.upwards ? kTextSize + 4 : 0;
  const size_t every = std::max<size_t>(1, size_t(std::ceil(needed / place.cell_width)));
  for (size_t c = 0; c < cells.columns.size(); c += every) {
    const double x = box.left + (double(c) + 0.5) * place.cell_width;
    const std::string text = EscapeHtml(
        ShortenText(cells.columns[c], place.upwards ? kLabelWidth : place.cell_width, kTextSize));
    if (place.upwards) {
      Put(out,
          "<text class=\"tick\" x=\"{0}\" y=\"{1}\" transform=\"rotate(-90 {0} {1})\">{2}</text>",
          Px(x + 4), Px(box.top - 6), text);
    } else {
      Put(out, "<text class=\"tick m\" x=\"{}\" y=\"{}\">{}</text>", Px(x), Px(box.top - 8), text);
    }
  }
}

void PutCell(std::string& out, const HeatChart& chart, const Cells& cells, const HeatBox& place,
             size_t r, size_t c) {
  const double value = cells.values[r][c];
  const double strength = Strength(value, cells.most);
  const double x = place.box.left + double(c) * place.cell_width;
  const double y = place.box.top + double(r) * place.cell_height;
  const std::string tip = fmt::format("{}: {}\n{}: {}\n{}", chart.row_title, cells.rows[r],
                                      chart.column_title, cells.columns[c], ValueText(value));
  if (value > 0) {
    Put(out,
        "<rect class=\"cell\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
        "fill-opacity=\"{:.2f}\" data-tip=\"{}\"/>",
        Px(x + 0.5), Px(y + 0.5), Px(std::max(1.0, place.cell_width - 1)),
        Px(std::max(1.0, place.cell_height - 1)), 0.06 + 0.94 * strength, EscapeHtml(tip));
  }
  const std::string text = ValueText(value);
  const bool fits = cells.widest + 2 <= place.cell_width && place.cell_height > 14;
  if (fits && value > 0) {
    Put(out, "<text class=\"count m {}\" x=\"{}\" y=\"{}\">{}</text>", strength > 0.6 ? "on" : "",
        Px(x + place.cell_width / 2), Px(y + place.cell_height / 2 + 4), text);
  }
}

}  // namespace

std::string HeatSvg(const HeatChart& chart) {
  const Cells cells = CellsOf(chart);
  const HeatBox place = PlaceCells(cells);
  const PlotBox& box = place.box;
  std::string out = SvgOpen("heat", chart.title, box.bottom() + 8) + ">";
  const double half = kChartWidth / 2 - 8;
  Put(out, "<text class=\"axis y\" x=\"4\" y=\"13\">{} \xE2\x86\x93</text>",
      EscapeHtml(ShortenText(chart.row_title, half - 16, kTextSize)));
  Put(out, "<text class=\"axis x e\" x=\"{}\" y=\"13\">{} \xE2\x86\x92</text>", Px(kChartWidth - 8),
      EscapeHtml(ShortenText(chart.column_title, half - 16, kTextSize)));
  Put(out, "<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", Px(box.left),
      Px(box.top), Px(box.width), Px(box.height));
  PutHeatLabels(out, cells, place);
  for (size_t r = 0; r < cells.rows.size(); ++r) {
    for (size_t c = 0; c < cells.columns.size(); ++c) PutCell(out, chart, cells, place, r, c);
  }
  if (cells.block > 1) {
    Put(out, "<text class=\"none\" x=\"4\" y=\"29\">each cell is the sum of {} x {}</text>",
        cells.block, cells.block);
  }
  return out + "</svg>";
}

std::string HeatSwatch() {
  std::string out = "<svg class=\"swatch wide\" viewBox=\"0 0 80 12\" aria-hidden=\"true\">";
  for (int i = 0; i < 8; ++i) {
    Put(out,
        "<rect class=\"cell\" x=\"{}\" y=\"0\" width=\"10\" height=\"12\" "
        "fill-opacity=\"{:.2f}\"/>",
        10 * i, 0.06 + 0.94 * (i + 0.5) / 8);
  }
  return out + "</svg>";
}

}  // namespace trireme
