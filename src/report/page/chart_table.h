#pragma once
#include "report/page/page.h"

namespace trireme {

// The numbers of a chart as a table; long ones are thinned and say so in the caption.
PageTable TableOf(const LineChart& chart);
PageTable TableOf(const BarChart& chart);
PageTable TableOf(const HeatChart& chart);

}  // namespace trireme
