#pragma once
#include <string>
#include <vector>

#include "report/plot/chart.h"

namespace trireme {

// Charts for a terminal. Without `unicode` nothing but ASCII is written (names are the caller's).
struct TextStyle {
  int width = 80;   // columns; at least 30 are used
  int height = 12;  // lines of a line chart, with its title and axis; at least 6
  bool unicode = true;
};

// Lines without their ends. The first curve is drawn as a line, the others as marks on it.
std::vector<std::string> TextLines(const LineChart& chart, const TextStyle& style);

// One line per bar, with what each letter stands for above them.
std::vector<std::string> TextBars(const BarChart& chart, const TextStyle& style);

}  // namespace trireme
