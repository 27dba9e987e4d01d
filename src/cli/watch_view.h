#pragma once
#include <string>

#include "record/run_reader.h"

namespace trireme {

// "runs/a | running | epoch 3/10 | step 1,234 | train loss 0.43 | ... | last line 2 s ago"
std::string WatchStatus(const RunData& run, double silent_s);

// The run as lines for a terminal of this size: status, loss, accuracy, each rank's time.
struct ViewSize {
  int width = 80, height = 24;
  bool unicode = true;
};
std::string WatchView(const RunData& run, double silent_s, const ViewSize& size);

}  // namespace trireme
