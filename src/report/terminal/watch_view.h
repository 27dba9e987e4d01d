#pragma once
#include <string>
#include <vector>

#include "report/run_reader.h"

namespace trireme {

// What there is to say of a run, the most important first: its path, its state, epoch 3/10, step
// 1,234, losses, accuracy, samples/s, what is left, how old the last news are. `now`: seconds since
// 1970.
std::vector<std::string> WatchFields(const RunData& run, double now);
std::string WatchStatus(const RunData& run, double now);  // the same on one line

// What a browser shows of it on a tab: "12 of 20 epochs, 87.91 % - NAME".
std::string WatchTitle(const RunData& run);

// The run as lines for a terminal of this size: status, loss, accuracy, each rank's time. It fits
// with a line to spare, for the cursor.
struct ViewSize {
  int width = 80, height = 24;
  bool unicode = true;
};
std::string WatchView(const RunData& run, double now, const ViewSize& size);

}  // namespace trireme
