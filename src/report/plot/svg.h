#pragma once
#include <string>
#include <string_view>

#include "report/plot/chart.h"

namespace trireme {

// Charts as SVG that stands in a page: colours, dashes and what the mouse does are the page's
// (page_style.h). What others wrote (names of runs, classes) is escaped here.

// For text and for attributes in double quotes. What is no UTF-8 and control characters become
// U+FFFD.
std::string EscapeHtml(std::string_view text);

// About as wide as a browser draws it, rather wider; in the units of the picture.
double TextWidth(std::string_view text, double size);

// At most so wide: the end, or the middle where `middle`, becomes "…".
std::string ShortenText(std::string_view text, double width, double size, bool middle = false);

std::string AxisText(const Axis& axis);  // throughput (samples/s)

std::string LineSvg(const LineChart& chart);
std::string BarSvg(const BarChart& chart);
std::string HeatSvg(const HeatChart& chart);

// The small picture beside a name in the legend. Curves and parts are numbered as in the chart.
std::string CurveSwatch(const LineChart& chart, size_t curve);
std::string StyleSwatch(int style, CurveKind kind);
std::string PartSwatch(size_t part);
std::string HeatSwatch();

}  // namespace trireme
