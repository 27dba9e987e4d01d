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

// The same values over several x, of which a reader chooses: steps, epochs, time. The choice stands
// once above the charts of a section; one by the same name is made for all charts of the page.
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
  struct Cell {
    size_t row = 0, column = 0;
  };
  std::vector<Cell> bold = {};   // the best of their kind
  bool sortable = false;         // by a click on a column's head
  std::vector<int> styles = {};  // of each row: the curves that it stands for (Curve::style)
};

// A few numbers that say it all.
struct Figures {
  struct Figure {
    std::string value;  // 97.78 %
    std::string title;
    std::string note = "";
  };
  std::vector<Figure> figures;
};

struct Paragraph {
  std::string text;
};

// Lines that a reader can copy into a terminal.
struct Commands {
  std::vector<std::string> lines;
};

using Block = std::variant<LineChart, BarChart, HeatChart, PageTable, Paragraph, Commands,
                           ChartChoice, Figures>;

struct Section {
  std::string title;
  std::vector<Block> blocks;
  bool folded = false;  // only its title is seen until it is opened
};

struct Page {
  std::string title;
  std::string subtitle;
  std::vector<Section> sections;
};

}  // namespace trireme
