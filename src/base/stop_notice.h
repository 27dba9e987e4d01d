#pragma once
#include <atomic>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/signals.h"

namespace trireme {

// Signals for a supervisor that polls them: the first Ctrl-C is answered by a line that says what
// happens now, and that a second one stops everything immediately. Any thread.
class StopNotice {
 public:
  // `what`: as in "stops after this step".
  StopNotice(const Signals& signals, const Log& log, std::string part, std::string what)
      : signals_(signals), log_(log), part_(std::move(part)), what_(std::move(what)) {}

  int received();
  bool stop() { return received() != 0; }
  void Over() { told_ = true; }  // it has stopped: nothing more to say

 private:
  const Signals& signals_;
  const Log log_;
  const std::string part_, what_;
  std::atomic<bool> told_ = false;
};

}  // namespace trireme
