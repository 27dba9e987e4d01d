#pragma once

#include <string>
#include <variant>
#include <vector>

#include "report/plot/chart.h"

namespace trireme {

// What a page shows: charts, tables and words, in sections. Who fills it knows runs or sweeps,
// who writes it (page_html.h) knows HTML and SVG; neither knows the other.

// The same values over several x, of which a reader chooses: steps, epochs, time. The choice stands
// once above the charts of a section; one by the same name is made for all charts of the page.
struct ChartChoice {
  std::vector<std::string> names;
  std::vector<LineChart> charts;  // one for each name
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

// Pictures beside each other, at their own size.
struct Pictures {
  struct Picture {
    std::string png;  // in base64
    std::string title;
    std::string note = "";
  };
  std::vector<Picture> pictures;
  std::string title = "";
};

// Lines that a reader can copy into a terminal.
struct Commands {
  std::vector<std::string> lines;
};

using Block = std::variant<LineChart, BarChart, HeatChart, PageTable, Paragraph, Commands,
                           ChartChoice, Figures, Pictures>;

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
