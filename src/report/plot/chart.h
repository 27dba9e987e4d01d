#pragma once

#include <string>
#include <vector>

namespace trireme {

// What a chart shows: axes, curves, bars, a matrix. svg.h and terminal/text_plot.h draw it.

// The title says what is measured; the unit ("s", "samples/s", "%") may be empty.
struct Axis {
  std::string title;
  std::string unit;
  bool logarithmic = false;
  bool from_zero = true;
};

enum class CurveKind {
  kMeasured,
  kPredicted,
  kPublished,
  kIdeal,
  kOther,  // one of many, for comparison: thin and grey until somebody points at its row
};

inline constexpr int kOtherStyles = 1000;  // Curve::style of those of kOther begin here

// Points in ascending x. low and high are the ends of error bars or of a band, or empty.
struct Curve {
  std::string name;
  CurveKind kind = CurveKind::kMeasured;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> low;
  std::vector<double> high;
  int style = -1;  // number of colour and marker: one run looks alike everywhere; -1: its place
};

struct LineChart {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Curve> curves;
  std::string caption;
  bool own_legend = true;  // else one stands above all charts of the section
};

// Parts lie on one another in each bar: values[part][bar].
struct BarChart {
  std::string title;
  Axis y;
  std::vector<std::string> bars;
  std::vector<std::string> parts;
  std::vector<std::vector<double>> values;
  std::string caption;
  std::string bars_title = "";  // what the bars are: rank, strategy
};

// A matrix of counts, such as a confusion matrix: values[row][column].
struct HeatChart {
  std::string title;
  std::string row_title;
  std::string column_title;
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  std::vector<std::vector<double>> values;
  std::string caption;
};

}  // namespace trireme
