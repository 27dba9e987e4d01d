#include <algorithm>

#include "report/plot/decimate.h"
#include "report/plot/svg.h"
#include "report/plot/svg_parts.h"

namespace trireme {
namespace {

constexpr size_t kMostBars = 80;
constexpr int kPatterns = 5;  // of page_style.cc; 0 is none

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

// Bars lie: a name has room on its left, or above it where it is long.
struct BarLayout {
  AxisScale scale;
  PlotBox box;
  double pitch = 0, thickness = 0;
  bool names_above = false;

  double Top(size_t place) const { return box.top + (double(place) + 1) * pitch - thickness - 3; }
};

constexpr double kTitleRoom = 24, kAxisRoom = 44, kMostNameRoom = 150;

BarLayout LayOut(const BarChart& chart, const std::vector<size_t>& shown) {
  BarLayout layout;
  std::vector<double> totals = {0};
  double widest = 0;
  for (const size_t bar : shown) {
    totals.push_back(BarTotal(chart, bar));
    widest = std::max(widest, TextWidth(chart.bars[bar], kTextSize));
  }
  // What lies on one another begins at zero and has no logarithm.
  layout.scale = MakeScale(totals, false, true, 6);
  if (chart.y.unit == "%") layout.scale.EndBefore(100);
  layout.names_above = widest > kMostNameRoom;
  layout.thickness = layout.names_above ? 14 : 18;
  layout.pitch = layout.thickness + (layout.names_above ? 24 : 7);
  PlotBox& box = layout.box;
  box.left = layout.names_above ? 6 : widest + 12;
  box.top = kTitleRoom;
  box.width = kChartWidth - box.left - 24;
  box.height = layout.pitch * double(std::max<size_t>(1, shown.size())) + 6;
  return layout;
}

void PutBar(std::string& out, const BarChart& chart, size_t bar, double top,
            const BarLayout& layout) {
  const PlotBox& box = layout.box;
  double before = 0;
  for (size_t part = 0; part < chart.parts.size(); ++part) {
    const double value = BarValue(chart, part, bar);
    if (value <= 0) continue;
    const double x0 = box.left + layout.scale.Place(before) * box.width;
    const double x1 = box.left + layout.scale.Place(before + value) * box.width;
    before += value;
    const std::string unit = chart.y.unit.empty() ? "" : " " + chart.y.unit;
    Put(out, "<g class=\"s c{}\" data-s=\"{}\" data-tip=\"{}\">", part % kColours, part,
        EscapeHtml(fmt::format("{}\n{}: {}{}", chart.bars[bar], chart.parts[part], ValueText(value),
                               unit)));
    const std::string rect = fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", Px(x0),
                                         Px(top), Px(std::max(0.1, x1 - x0)), Px(layout.thickness));
    Put(out, "<rect class=\"part\" {}/>", rect);
    if (part % kPatterns) {
      Put(out, "<rect class=\"hatch\" {} fill=\"url(#p{})\"/>", rect, part % kPatterns);
    }
    out += "</g>";
  }
}

void PutBarName(std::string& out, const std::string& name, double top, const BarLayout& layout) {
  if (layout.names_above) {
    const std::string text = ShortenText(name, kChartWidth - 16, kTextSize, true);
    Put(out, "<text class=\"tick\" x=\"{}\" y=\"{}\">{}</text>", Px(layout.box.left), Px(top - 5),
        EscapeHtml(text));
    return;
  }
  Put(out, "<text class=\"tick e\" x=\"{}\" y=\"{}\">{}</text>", Px(layout.box.left - 6),
      Px(top + layout.thickness / 2 + 4.5), EscapeHtml(name));
}

void PutValueAxis(std::string& out, const BarLayout& layout, const Axis& axis) {
  const PlotBox& box = layout.box;
  std::vector<Label> labels;
  const auto texts = TickTexts(layout.scale);
  for (size_t i = 0; i < texts.size(); ++i) {
    const double x = box.left + layout.scale.Place(layout.scale.ticks[i]) * box.width;
    const double half = TextWidth(texts[i], kTextSize) / 2;
    Put(out, "<path class=\"grid\" d=\"M{},{}V{}\"/>", Px(x), Px(box.top), Px(box.bottom()));
    labels.push_back({std::clamp(x, half + 2, kChartWidth - 2 - half), texts[i]});
  }
  for (const Label& label : FittingLabels(labels, 8)) {
    Put(out, "<text class=\"tick m\" x=\"{}\" y=\"{}\">{}</text>", Px(label.at),
        Px(box.bottom() + 16), EscapeHtml(label.text));
  }
  Put(out, "<text class=\"axis x m\" x=\"{}\" y=\"{}\">{}</text>", Px(box.left + box.width / 2),
      Px(box.bottom() + 36), EscapeHtml(ShortenText(AxisText(axis), box.width, kTextSize)));
}

}  // namespace

std::string BarSvg(const BarChart& chart) {
  const auto shown = DecimateRows(chart.bars.size(), kMostBars);
  const BarLayout layout = LayOut(chart, shown);
  std::string out = SvgOpen("bars", chart.title, layout.box.bottom() + kAxisRoom) + ">";
  Put(out, "<text class=\"axis y\" x=\"4\" y=\"13\">{}</text>",
      EscapeHtml(ShortenText(chart.bars_title, kChartWidth / 2, kTextSize)));
  PutValueAxis(out, layout, chart.y);
  for (size_t i = 0; i < shown.size(); ++i) {
    PutBar(out, chart, shown[i], layout.Top(i), layout);
    PutBarName(out, chart.bars[shown[i]], layout.Top(i), layout);
  }
  if (shown.size() < chart.bars.size()) {
    Put(out, "<text class=\"none e\" x=\"{}\" y=\"13\">{} of {} bars</text>", Px(kChartWidth - 8),
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
