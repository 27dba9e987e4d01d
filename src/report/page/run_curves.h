#pragma once
#include <span>
#include <string>
#include <vector>

#include "report/page/page.h"
#include "report/run_reader.h"

namespace trireme {

// The curves of runs over steps, epochs, time and samples. Names are the runs' as shown.
struct NamedRun {
  std::string name;
  const RunData* data = nullptr;
  int style = 0;  // of its curves everywhere; from kOtherStyles on: one of many
};

// From so many runs on, runs are rows of a table and only the best of them have colours.
inline constexpr size_t kManyRuns = 8;

// Values that span a wide range get a logarithmic axis, values far from zero one that does not
// begin there. Of a rate some part must be small: one that ends at almost nothing stays linear.
enum class Quantity { kLoss, kRate };
void FitAxis(Axis& axis, std::span<const Curve> curves, Quantity quantity);

// A large number and the unit in which it is short: 7200 s is 2 h.
struct UnitChoice {
  std::string unit;
  double per = 1;  // divide by it
};
UnitChoice TimeUnit(double most_seconds);
UnitChoice ByteUnit(double most_bytes);

std::vector<Block> LearningCharts(std::span<const NamedRun> runs);  // loss, accuracy
std::vector<Block> SpeedCharts(std::span<const NamedRun> runs);     // throughput, rate, bytes
std::vector<Block> TimeCharts(std::span<const NamedRun> runs);      // each rank's time

}  // namespace trireme
