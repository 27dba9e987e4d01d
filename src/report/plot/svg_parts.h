#pragma once
#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/plot/chart.h"
#include "report/plot/ticks.h"

namespace trireme {

// What line, bar and heat charts have in common. The picture is narrow, so that its text is still
// readable where a phone shrinks it.
inline constexpr double kChartWidth = 460;
inline constexpr double kChartHeight = 290;
inline constexpr double kTextSize = 13;
inline constexpr int kColours = 8;

// Where the curves are, inside the picture.
struct PlotBox {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

template <class... A>
void Put(std::string& out, fmt::format_string<A...> text, A&&... args) {
  fmt::format_to(std::back_inserter(out), text, std::forward<A>(args)...);
}

std::string Px(double value);  // 12.3, 12: as few characters as a picture needs

// <svg ...> with what a screen reader says.
std::string SvgOpen(std::string_view kind, std::string_view title, double height);

// The lines and numbers of the vertical axis, its title above.
void PutYAxis(std::string& out, const PlotBox& box, const AxisScale& scale, const Axis& axis);

// Names under (or beside) places, of which as many are left out as need be.
struct Label {
  double at = 0;
  std::string text;
};
std::vector<Label> FittingLabels(const std::vector<Label>& labels, double gap);

// The smallest box that leaves room for the ticks' texts.
PlotBox BoxFor(const AxisScale& y, double below);

}  // namespace trireme
