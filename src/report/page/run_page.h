#pragma once
#include <span>
#include <string>
#include <vector>

#include "report/page/page.h"
#include "report/run_reader.h"

namespace trireme {

// One run, or several over each other: what was reached, loss and accuracy over steps, epochs, time
// and samples, speed, where the time went, classes, what differs, how to repeat it. What the files
// do not hold is left out; what could not be read is said.
enum class RunsPageState {
  kSaid,
  kElsewhere
};  // that a run is not done: whoever shows it may say it
Page RunsPage(std::span<const RunData> runs, RunsPageState state = RunsPageState::kSaid);

}  // namespace trireme
