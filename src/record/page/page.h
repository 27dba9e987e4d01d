#pragma once

#include <string>
#include <variant>
#include <vector>

namespace trireme {

// What a page shows: charts, tables and words, in sections. Who fills it knows runs or sweeps,
// who writes it (page_html.h) knows HTML and SVG; neither knows the other.

// The title says what is measured; the unit ("s", "samples/s", "%") may be empty.
struct Axis {
  std::string title;
  std::string unit;
  bool logarithmic = false;
  bool from_zero = true;
};

enum class CurveKind { kMeasured, kPredicted, kPublished, kIdeal };

// Points in ascending x. low and high are the ends of error bars or of a band, or empty.
struct Curve {
  std::string name;
  CurveKind kind = CurveKind::kMeasured;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> low;
  std::vector<double> high;
};

struct LineChart {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Curve> curves;
  std::string caption;
};

// The same values over several x, of which a reader chooses: steps, epochs, time. A choice by one
// of these names is made for all charts of the page that offer it.
struct ChartChoice {
  std::vector<std::string> names;
  std::vector<LineChart> charts;  // one for each name
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

struct PageTable {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::string caption;
  bool folded = false;  // only its title is seen until it is opened
};

struct Paragraph {
  std::string text;
};

// Lines that a reader can copy into a terminal.
struct Commands {
  std::vector<std::string> lines;
};

using Block =
    std::variant<LineChart, BarChart, HeatChart, PageTable, Paragraph, Commands, ChartChoice>;

struct Section {
  std::string title;
  std::vector<Block> blocks;
};

struct Page {
  std::string title;
  std::string subtitle;
  std::vector<Section> sections;
};

}  // namespace trireme
