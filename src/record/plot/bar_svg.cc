#include <algorithm>

#include "record/plot/svg.h"
#include "record/plot/svg_parts.h"
#include "record/plot/thin.h"

namespace trireme {
namespace {

constexpr size_t kMostBars = 80;
constexpr double kRotatedWidth = 90;  // of a name that is written upwards
constexpr int kPatterns = 5;          // of page_style.cc; 0 is none

double BarValue(const BarChart& chart, size_t part, size_t bar) {
  if (part >= chart.values.size() || bar >= chart.values[part].size()) return 0;
  const double value = chart.values[part][bar];
  return Drawable(value) && value > 0 ? value : 0;
}

double BarTotal(const BarChart& chart, size_t bar) {
  double sum = 0;
  for (size_t part = 0; part < chart.parts.size(); ++part) sum += BarValue(chart, part, bar);
  return sum;
}

void PutBar(std::string& out, const BarChart& chart, size_t bar, double x, double width,
            const PlotBox& box, const AxisScale& scale) {
  double below = 0;
  for (size_t part = 0; part < chart.parts.size(); ++part) {
    const double value = BarValue(chart, part, bar);
    if (value <= 0) continue;
    const double y0 = box.bottom() - scale.Place(below) * box.height;
    const double y1 = box.bottom() - scale.Place(below + value) * box.height;
    below += value;
    const std::string unit = chart.y.unit.empty() ? "" : " " + chart.y.unit;
    Put(out, "<g class=\"s c{}\" data-s=\"{}\" data-tip=\"{}\">", part % kColours, part,
        EscapeHtml(fmt::format("{}\n{}: {}{}", chart.bars[bar], chart.parts[part], ValueText(value),
                               unit)));
    const std::string rect = fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", Px(x),
                                         Px(y1), Px(width), Px(std::max(0.1, y0 - y1)));
    Put(out, "<rect class=\"part\" {}/>", rect);
    if (part % kPatterns) {
      Put(out, "<rect class=\"hatch\" {} fill=\"url(#p{})\"/>", rect, part % kPatterns);
    }
    out += "</g>";
  }
}

struct BarLabels {
  std::vector<Label> labels;
  bool upwards = false;
  double below = 28;  // the room that they take
};

// Beside each other where they fit, else upwards, else only some of them.
BarLabels LabelBars(const BarChart& chart, const std::vector<size_t>& shown, double room) {
  BarLabels result;
  double widest = 0;
  for (const size_t bar : shown) {
    widest = std::max(widest, TextWidth(chart.bars[bar], kTextSize));
  }
  // Short names that stand for a sequence (r0, r1, ...) are left out rather than turned.
  result.upwards = widest + 6 > room && widest > 34;
  for (const size_t bar : shown) {
    result.labels.push_back(
        {0, ShortenText(chart.bars[bar], result.upwards ? kRotatedWidth : 120, kTextSize, true)});
  }
  if (result.upwards) result.below = std::min(widest, kRotatedWidth) + 16;
  return result;
}

void PutBarLabels(std::string& out, BarLabels& names, const PlotBox& box, double pitch) {
  for (size_t i = 0; i < names.labels.size(); ++i) {
    names.labels[i].at = box.left + (double(i) + 0.5) * pitch;
  }
  if (!names.upwards) {
    for (const Label& label : FittingLabels(names.labels, 6)) {
      Put(out, "<text class=\"tick m\" x=\"{}\" y=\"{}\">{}</text>", Px(label.at),
          Px(box.bottom() + 18), EscapeHtml(label.text));
    }
    return;
  }
  const size_t every = std::max<size_t>(1, size_t((kTextSize + 5) / pitch + 0.999));
  for (size_t i = 0; i < names.labels.size(); i += every) {
    const std::string x = Px(names.labels[i].at + 4), y = Px(box.bottom() + 8);
    Put(out,
        "<text class=\"tick e\" x=\"{0}\" y=\"{1}\" transform=\"rotate(-90 {0} {1})\">{2}</text>",
        x, y, EscapeHtml(names.labels[i].text));
  }
}

}  // namespace

std::string BarSvg(const BarChart& chart) {
  const auto shown = ThinRows(chart.bars.size(), kMostBars);
  std::vector<double> totals = {0};
  for (const size_t bar : shown) totals.push_back(BarTotal(chart, bar));
  // What lies on one another begins at zero and has no logarithm.
  const AxisScale scale = MakeScale(totals, false, true, 6);
  const double guess = (kChartWidth - 60) / double(std::max<size_t>(1, shown.size()));
  BarLabels names = LabelBars(chart, shown, guess);
  PlotBox box = BoxFor(scale, 28);
  const double title_room = chart.bars_title.empty() ? 0 : 18;
  const double height = kChartHeight + names.below - 28 + title_room;
  const double pitch = box.width / double(std::max<size_t>(1, shown.size()));
  const double width = std::min(pitch * 0.78, 56.0);
  std::string out = SvgOpen("bars", chart.title, height) + ">";
  PutYAxis(out, box, scale, chart.y);
  for (size_t i = 0; i < shown.size(); ++i) {
    PutBar(out, chart, shown[i], box.left + (double(i) + 0.5) * pitch - width / 2, width, box,
           scale);
  }
  PutBarLabels(out, names, box, pitch);
  if (title_room > 0) {
    Put(out, "<text class=\"axis x m\" x=\"{}\" y=\"{}\">{}</text>", Px(box.left + box.width / 2),
        Px(height - 6), EscapeHtml(ShortenText(chart.bars_title, box.width, kTextSize)));
  }
  if (shown.size() < chart.bars.size()) {
    Put(out, "<text class=\"none e\" x=\"{}\" y=\"26\">{} of {} bars</text>", Px(box.right()),
        shown.size(), chart.bars.size());
  }
  return out + "</svg>";
}

std::string PartSwatch(size_t part) {
  std::string out = fmt::format(
      "<svg class=\"swatch c{}\" viewBox=\"0 0 34 12\" aria-hidden=\"true\">"
      "<rect class=\"part\" x=\"8\" y=\"0\" width=\"18\" height=\"12\"/>",
      part % kColours);
  if (part % kPatterns) {
    Put(out,
        "<rect class=\"hatch\" x=\"8\" y=\"0\" width=\"18\" height=\"12\" fill=\"url(#p{})\"/>",
        part % kPatterns);
  }
  return out + "</svg>";
}

}  // namespace trireme
