#include "report/terminal/text_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/text.h"
#include "report/plot/decimate.h"
#include "report/plot/svg.h"
#include "report/plot/ticks.h"

namespace trireme {
namespace {

constexpr const char* kMarks[] = {"\xE2\x97\x8F", "\xE2\x96\xB2", "\xE2\x97\x86", "\xE2\x96\xA0"};
constexpr const char* kPlainMarks[] = {"o", "x", "#", "@"};
constexpr size_t kMostTextBars = 12;

std::string MarkOf(size_t curve, bool unicode) {
  if (curve == 0) return unicode ? "\xE2\x94\x80" : "*";
  return unicode ? kMarks[(curve - 1) % std::size(kMarks)]
                 : kPlainMarks[(curve - 1) % std::size(kPlainMarks)];
}

// Dots in cells: 2 x 4 in a cell of braille, one in a cell of ASCII.
class DotCanvas {
 public:
  DotCanvas(int columns, int rows, bool unicode)
      : columns_(columns),
        rows_(rows),
        unicode_(unicode),
        dots_(size_t(columns * rows)),
        marks_(size_t(columns * rows)) {}

  int dots_across() const { return columns_ * (unicode_ ? 2 : 1); }
  int dots_down() const { return rows_ * (unicode_ ? 4 : 1); }

  void Dot(int x, int y) {
    if (x < 0 || y < 0 || x >= dots_across() || y >= dots_down()) return;
    if (!unicode_) {
      dots_[size_t(y * columns_ + x)] = 1;
      return;
    }
    // The bits of U+2800: down the left column, down the right one, then the lowest pair.
    constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    dots_[size_t(y / 4 * columns_ + x / 2)] |= kBits[y % 4][x % 2];
  }

  void Mark(int x, int y, const std::string& mark) {
    if (x < 0 || y < 0 || x >= dots_across() || y >= dots_down()) return;
    marks_[size_t(y / (unicode_ ? 4 : 1) * columns_ + x / (unicode_ ? 2 : 1))] = mark;
  }

  std::string Row(int row) const {
    std::string text;
    for (int c = 0; c < columns_; ++c) {
      const size_t at = size_t(row * columns_ + c);
      const uint8_t dots = dots_[at];
      if (!marks_[at].empty()) {
        text += marks_[at];
      } else if (dots == 0) {
        text += ' ';
      } else if (unicode_) {
        text += {'\xE2', char(0xA0 | dots >> 6), char(0x80 | (dots & 0x3F))};
      } else {
        text += '*';
      }
    }
    return text;
  }

 private:
  int columns_, rows_;
  bool unicode_;
  std::vector<uint8_t> dots_;
  std::vector<std::string> marks_;
};

struct TextAxes {
  AxisScale x, y;
};

struct Cell {
  int x = 0, y = 0;
  bool there = false;
};

Cell CellOf(const Curve& curve, size_t i, const TextAxes& axes, const DotCanvas& canvas) {
  if (!Drawable(curve.x[i], axes.x.logarithmic) || !Drawable(curve.y[i], axes.y.logarithmic)) {
    return {};
  }
  return {int(std::lround(axes.x.Place(curve.x[i]) * (canvas.dots_across() - 1))),
          int(std::lround((1 - axes.y.Place(curve.y[i])) * (canvas.dots_down() - 1))), true};
}

void DrawBetween(DotCanvas& canvas, const Cell& from, const Cell& to) {
  const int steps = std::max({std::abs(to.x - from.x), std::abs(to.y - from.y), 1});
  for (int i = 0; i <= steps; ++i) {
    const double part = double(i) / steps;
    canvas.Dot(int(std::lround(from.x + part * (to.x - from.x))),
               int(std::lround(from.y + part * (to.y - from.y))));
  }
}

void DrawCurve(DotCanvas& canvas, const Curve& curve, size_t number, const TextAxes& axes,
               bool unicode) {
  Cell before;
  double last_mark = -1e9;
  for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
    const Cell cell = CellOf(curve, i, axes, canvas);
    if (number == 0 && cell.there) DrawBetween(canvas, before.there ? before : cell, cell);
    if (number > 0 && cell.there && cell.x - last_mark >= (unicode ? 6 : 3)) {
      canvas.Mark(cell.x, cell.y, MarkOf(number, unicode));
      last_mark = cell.x;
    }
    before = cell;
  }
}

TextAxes AxesForText(const LineChart& chart, int rows) {
  std::vector<double> xs, ys;
  for (const Curve& curve : chart.curves) {
    xs.insert(xs.end(), curve.x.begin(), curve.x.end());
    ys.insert(ys.end(), curve.y.begin(), curve.y.end());
  }
  TextAxes axes{MakeScale(xs, chart.x.logarithmic, chart.x.from_zero, 4),
                MakeScale(ys, chart.y.logarithmic, chart.y.from_zero, std::max(2, rows / 3))};
  axes.x.EndAt(xs);
  return axes;
}

std::string AxisLine(const LineChart& chart, const TextAxes& axes, int indent, int columns) {
  std::string line(size_t(indent + columns), ' ');
  const auto texts = TickTexts(axes.x);
  int free = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const int size = int(texts[i].size());
    const int middle = indent + int(std::lround(axes.x.Place(axes.x.ticks[i]) * (columns - 1)));
    const int begin = std::clamp(middle - size / 2, 0, indent + columns - size);
    if (begin < free) continue;
    line.replace(size_t(begin), size_t(size), texts[i]);
    free = begin + size + 2;
  }
  return line + "  " + AxisText(chart.x);
}

}  // namespace

std::vector<std::string> TextLines(const LineChart& chart, const TextStyle& style) {
  const int rows = std::max(style.height, 6) - 2;
  const TextAxes axes = AxesForText(chart, rows);
  const auto texts = TickTexts(axes.y);
  int indent = 2;
  for (const std::string& text : texts) indent = std::max(indent, int(text.size()) + 2);
  const int title = int(TextWidth(AxisText(chart.x), 1) + 4);
  const int columns = std::max(16, std::max(style.width, 30) - indent - title);
  DotCanvas canvas(columns, rows, style.unicode);
  std::string legend = AxisText(chart.y) + ":";
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    DrawCurve(canvas, chart.curves[i], i, axes, style.unicode);
    legend += fmt::format(" {} {}", MarkOf(i, style.unicode), chart.curves[i].name);
  }
  std::vector<std::string> lines{legend};
  for (int row = 0; row < rows; ++row) {
    std::string label;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (int(std::lround((1 - axes.y.Place(axes.y.ticks[i])) * (rows - 1))) == row) {
        label = texts[i];
      }
    }
    lines.push_back(fmt::format("{:>{}} {}{}", label, indent - 2,
                                style.unicode ? "\xE2\x94\x82" : "|", canvas.Row(row)));
  }
  lines.push_back(AxisLine(chart, axes, indent, columns));
  return lines;
}

std::vector<std::string> TextBars(const BarChart& chart, const TextStyle& style) {
  constexpr char kLetters[] = "dfbcu#%+=o";
  std::vector<std::string> legend{chart.title + ":"};
  for (size_t part = 0; part < chart.parts.size(); ++part) {
    legend.push_back(
        fmt::format("{} {}", kLetters[part % (sizeof(kLetters) - 1)], chart.parts[part]));
  }
  std::vector<std::string> lines = Wrap(legend, " ", size_t(std::max(style.width, 30)));
  size_t widest = 1;
  double most = 0;
  const auto value_of = [&](size_t part, size_t bar) {
    const double value = chart.values[part][bar];
    return Drawable(value) && value > 0 ? value : 0;
  };
  for (size_t bar = 0; bar < chart.bars.size(); ++bar) {
    double sum = 0;
    for (size_t part = 0; part < chart.parts.size(); ++part) sum += value_of(part, bar);
    most = std::max(most, sum);
    widest = std::max(widest, chart.bars[bar].size());
  }
  const double room = std::max(10, std::max(style.width, 30) - int(widest) - 14);
  for (const size_t bar : DecimateRows(chart.bars.size(), kMostTextBars)) {
    std::string line = fmt::format("{:>{}} ", chart.bars[bar], widest);
    double sum = 0;
    size_t drawn = 0;
    for (size_t part = 0; part < chart.parts.size(); ++part) {
      sum += value_of(part, bar);
      const size_t end = most > 0 ? size_t(std::lround(sum / most * room)) : 0;
      line.append(end - drawn, kLetters[part % (sizeof(kLetters) - 1)]);
      drawn = end;
    }
    lines.push_back(fmt::format("{} {} {}", line, ValueText(sum), chart.y.unit));
  }
  return lines;
}

}  // namespace trireme
