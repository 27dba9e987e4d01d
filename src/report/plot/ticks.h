#pragma once
#include <span>
#include <string>
#include <vector>

namespace trireme {

// Where an axis begins and ends, and the round numbers between that are named on it.
// Plain functions over any numbers: what cannot be drawn (see Drawable) is passed over.

// Finite, and far enough from the ends of double that differences and ratios are finite, too.
bool Drawable(double value, bool logarithmic = false);

struct AxisScale {
  double begin = 0;
  double end = 1;
  bool logarithmic = false;
  std::vector<double> ticks;  // ascending, within [begin, end]

  double Place(double value) const;  // 0 at the beginning, 1 at the end
  // Ends (and where logarithmic begins) at one of these values instead of at a round number: less
  // stays empty.
  void EndAt(std::span<const double> values);
  void EndBefore(double limit);  // where it would go beyond what there can be
};

// Holds all drawable values, with ticks at 1, 2, 5 times a power of ten (among whole numbers at
// whole ones), or where all values of a logarithmic axis are powers of two, at those. About
// `wanted` ticks, never more than twice that.
AxisScale MakeScale(std::span<const double> values, bool logarithmic, bool from_zero, int wanted);

// As short as the distance to the next tick allows: 0.25, 1500, 20k, 1.5M, 1e-7.
std::vector<std::string> TickTexts(const AxisScale& scale);

// For tables and hovering: 5 digits, whole numbers in full with commas; "-" where there is none.
std::string ValueText(double value);

}  // namespace trireme
