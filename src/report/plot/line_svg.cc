#include <algorithm>
#include <cmath>

#include "report/plot/decimate.h"
#include "report/plot/svg.h"
#include "report/plot/svg_parts.h"

namespace trireme {
namespace {

constexpr size_t kThinColumns = 160;  // more cannot be told apart in a picture of this width
constexpr size_t kManyCurves = 8;     // of more, each is drawn with fewer points
constexpr size_t kAllMarked = 24;     // points that all get a marker
constexpr size_t kSomeMarked = 6;     // markers of a longer curve
constexpr int kShapes = 7;

const char* ClassOf(CurveKind kind) {
  switch (kind) {
    case CurveKind::kPredicted:
      return "predicted";
    case CurveKind::kPublished:
      return "published";
    case CurveKind::kIdeal:
      return "ideal";
    case CurveKind::kOther:
      return "other";
    default:
      return "measured";
  }
}

std::string MarkerPath(int shape, double x, double y) {
  const auto at = [&](double dx, double dy) { return Px(x + dx) + "," + Px(y + dy); };
  switch (shape % kShapes) {
    case 0:
      return "M" + at(-3.2, 0) + "a3.2,3.2 0 1,0 6.4,0a3.2,3.2 0 1,0 -6.4,0z";
    case 1:
      return "M" + at(-3, -3) + "h6v6h-6z";
    case 2:
      return "M" + at(0, -4) + "l4,7h-8z";
    case 3:
      return "M" + at(0, -4.2) + "l4.2,4.2l-4.2,4.2l-4.2,-4.2z";
    case 4:
      return "M" + at(-4, 0) + "h8M" + at(0, -4) + "v8";
    case 5:
      return "M" + at(-3, -3) + "l6,6M" + at(3, -3) + "l-6,6";
    default:
      return "M" + at(0, 4) + "l4,-7h-8z";
  }
}

int StyleOf(const LineChart& chart, size_t number) {
  const int style = chart.curves[number].style;
  return style < 0 ? int(number) : style;
}

struct PlotPoint {
  double x = 0, y = 0;  // in the picture
  size_t index = 0;     // in the curve
  bool joined = false;  // to the one before
};

struct LineAxes {
  PlotBox box;
  AxisScale x, y;

  double PxOf(double value) const { return box.left + x.Place(value) * box.width; }
  double PyOf(double value) const { return box.bottom() - y.Place(value) * box.height; }
};

// The points that are drawn; one that cannot be leaves a gap.
std::vector<PlotPoint> PointsOf(const Curve& curve, const LineAxes& axes, size_t columns) {
  const size_t count = std::min(curve.x.size(), curve.y.size());
  std::vector<double> places(count), values(count);
  for (size_t i = 0; i < count; ++i) {
    const bool there =
        Drawable(curve.x[i], axes.x.logarithmic) && Drawable(curve.y[i], axes.y.logarithmic);
    places[i] = Drawable(curve.x[i], axes.x.logarithmic) ? axes.x.Place(curve.x[i]) : NAN;
    values[i] = there ? curve.y[i] : NAN;
  }
  std::vector<PlotPoint> points;
  bool gap = true;
  for (const size_t i : DecimateCurve(places, values, columns)) {
    if (std::isnan(values[i])) {
      gap = true;
      continue;
    }
    points.push_back({axes.PxOf(curve.x[i]), axes.PyOf(curve.y[i]), i, !gap});
    gap = false;
  }
  return points;
}

void PutLine(std::string& out, const std::vector<PlotPoint>& points) {
  out += "<path class=\"l\" d=\"";
  for (size_t i = 0; i < points.size(); ++i) {
    const PlotPoint& p = points[i];
    Put(out, "{}{},{}", p.joined ? 'L' : 'M', Px(p.x), Px(p.y));
    const bool alone = !p.joined && (i + 1 == points.size() || !points[i + 1].joined);
    if (alone) out += "h0";  // a dot, by the round ends of lines
  }
  out += "\"/>";
}

void PutMarkers(std::string& out, const std::vector<PlotPoint>& points, int shape) {
  out += "<path class=\"m\" d=\"";
  double next = -1e9;
  const double distance =
      points.size() <= kAllMarked ? 0 : (points.back().x - points.front().x) / double(kSomeMarked);
  if (distance > 0) next = points.front().x + distance * (0.2 + 0.13 * (shape % kShapes));
  for (const PlotPoint& p : points) {
    if (p.x < next) continue;
    out += MarkerPath(shape, p.x, p.y);
    next = distance > 0 ? p.x + distance : next;
  }
  out += "\"/>";
}

// Bars where there are few points, a band where there are many.
void PutSpread(std::string& out, const Curve& curve, const std::vector<PlotPoint>& points,
               const LineAxes& axes) {
  const bool bars = points.size() <= kAllMarked;
  std::string there, back;
  for (const PlotPoint& p : points) {
    const double low = curve.low[p.index], high = curve.high[p.index];
    if (!Drawable(low, axes.y.logarithmic) || !Drawable(high, axes.y.logarithmic)) continue;
    const std::string x = Px(p.x), y0 = Px(axes.PyOf(low)), y1 = Px(axes.PyOf(high));
    if (bars) {
      Put(there, "M{},{}V{}M{},{}h6M{},{}h6", x, y0, y1, Px(p.x - 3), y0, Px(p.x - 3), y1);
    } else {
      Put(there, "{}{},{}", there.empty() ? 'M' : 'L', x, y0);
      back.insert(0, fmt::format("L{},{}", x, y1));
    }
  }
  if (there.empty()) return;
  Put(out, "<path class=\"{}\" d=\"{}{}{}\"/>", bars ? "bar" : "band", there, back,
      bars ? "" : "z");
}

bool HasSpread(const Curve& curve) {
  return curve.low.size() == curve.y.size() && curve.high.size() == curve.y.size() &&
         !curve.low.empty();
}

size_t ColumnsFor(const LineChart& chart) {
  if (chart.curves.size() <= kManyCurves) return kThinColumns;
  return std::max<size_t>(16, kThinColumns * kManyCurves / chart.curves.size());
}

void PutCurve(std::string& out, const LineChart& chart, size_t number, const LineAxes& axes) {
  const Curve& curve = chart.curves[number];
  const auto points = PointsOf(curve, axes, ColumnsFor(chart));
  const int style = StyleOf(chart, number);
  Put(out, "<g class=\"s c{} {}\" data-s=\"{}\" data-r=\"{}\" data-n=\"{}\" data-x=\"",
      style % kColours, ClassOf(curve.kind), number, style,
      chart.own_legend ? "" : EscapeHtml(curve.name));
  for (const PlotPoint& p : points) Put(out, "{:.7g} ", curve.x[p.index]);
  out += "\" data-y=\"";
  for (const PlotPoint& p : points) Put(out, "{:.5g} ", curve.y[p.index]);
  out += "\">";
  if (!points.empty()) {
    if (HasSpread(curve)) PutSpread(out, curve, points, axes);
    PutLine(out, points);
    const bool marked = curve.kind != CurveKind::kIdeal && curve.kind != CurveKind::kOther;
    if (marked || points.size() == 1) PutMarkers(out, points, style);
  }
  out += "</g>";
}

void PutXAxis(std::string& out, const LineAxes& axes, const Axis& axis) {
  const PlotBox& box = axes.box;
  std::vector<Label> labels;
  const auto texts = TickTexts(axes.x);
  for (size_t i = 0; i < texts.size(); ++i) {
    const double x = axes.PxOf(axes.x.ticks[i]);
    const double half = TextWidth(texts[i], kTextSize) / 2;
    Put(out, "<path class=\"grid\" d=\"M{},{}v4\"/>", Px(x), Px(box.bottom()));
    labels.push_back({std::min(x, kChartWidth - 4 - half), texts[i]});
  }
  for (const Label& label : FittingLabels(labels, 8)) {
    Put(out, "<text class=\"tick m\" x=\"{}\" y=\"{}\">{}</text>", Px(label.at),
        Px(box.bottom() + 18), EscapeHtml(label.text));
  }
  Put(out, "<text class=\"axis x m\" x=\"{}\" y=\"{}\">{}</text>", Px(box.left + box.width / 2),
      Px(box.bottom() + 37),
      EscapeHtml(ShortenText(AxisText(axis), box.width + 2 * 12, kTextSize)));
}

LineAxes AxesOf(const LineChart& chart) {
  std::vector<double> xs, ys;
  for (const Curve& curve : chart.curves) {
    xs.insert(xs.end(), curve.x.begin(), curve.x.end());
    ys.insert(ys.end(), curve.y.begin(), curve.y.end());
    if (!HasSpread(curve)) continue;
    ys.insert(ys.end(), curve.low.begin(), curve.low.end());
    ys.insert(ys.end(), curve.high.begin(), curve.high.end());
  }
  LineAxes axes;
  axes.x = MakeScale(xs, chart.x.logarithmic, chart.x.from_zero, 6);
  axes.y = MakeScale(ys, chart.y.logarithmic, chart.y.from_zero, 6);
  axes.x.EndAt(xs);
  const auto over_all = [](double y) { return Drawable(y) && y > 100; };
  if (chart.y.unit == "%" && std::none_of(ys.begin(), ys.end(), over_all)) {
    axes.y.EndBefore(100);
  }
  axes.box = BoxFor(axes.y, 46);
  return axes;
}

}  // namespace

std::string LineSvg(const LineChart& chart) {
  const LineAxes axes = AxesOf(chart);
  const PlotBox& box = axes.box;
  std::string out = SvgOpen("line", chart.title, kChartHeight);
  Put(out, " data-box=\"{} {} {} {}\" data-xs=\"{} {} {}\" data-ys=\"{} {} {}\">", Px(box.left),
      Px(box.top), Px(box.width), Px(box.height), axes.x.begin, axes.x.end, int(axes.x.logarithmic),
      axes.y.begin, axes.y.end, int(axes.y.logarithmic));
  PutYAxis(out, box, axes.y, chart.y);
  PutXAxis(out, axes, chart.x);
  bool any = false;
  for (const bool other : {true, false}) {  // those of which there are many lie below
    for (size_t i = 0; i < chart.curves.size(); ++i) {
      if ((chart.curves[i].kind == CurveKind::kOther) != other) continue;
      PutCurve(out, chart, i, axes);
      any = any || !PointsOf(chart.curves[i], axes, kThinColumns).empty();
    }
  }
  if (!any) {
    Put(out, "<text class=\"none m\" x=\"{}\" y=\"{}\">no values</text>",
        Px(box.left + box.width / 2), Px(box.top + box.height / 2 + 20));
  }
  return out + "</svg>";
}

std::string CurveSwatch(const LineChart& chart, size_t number) {
  return StyleSwatch(StyleOf(chart, number), chart.curves[number].kind);
}

std::string StyleSwatch(int style, CurveKind kind) {
  std::string out = fmt::format(
      "<svg class=\"swatch c{} {}\" viewBox=\"0 0 34 12\" aria-hidden=\"true\">"
      "<path class=\"l\" d=\"M1,6H33\"/>",
      style % kColours, ClassOf(kind));
  if (kind != CurveKind::kIdeal && kind != CurveKind::kOther) {
    Put(out, "<path class=\"m\" d=\"{}\"/>", MarkerPath(style, 17, 6));
  }
  return out + "</svg>";
}

}  // namespace trireme
