#pragma once
#include <span>
#include <string>
#include <vector>

#include "record/page/page.h"
#include "record/run_reader.h"

namespace trireme {

// The curves of runs over steps, epochs, time and samples. Names are the runs' as shown.
struct NamedRun {
  std::string name;
  const RunData* data = nullptr;
};

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
