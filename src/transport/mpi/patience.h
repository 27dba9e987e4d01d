#pragma once
#include <algorithm>
#include <chrono>
#include <thread>

#include "transport/deadline.h"

namespace trireme {

// Between two looks: nothing while an answer may come at once, then whatever else this core has to
// do, then sleep for a part of what the wait has taken so far. More ranks than cores must not keep
// each other from working, and a message that is waited for long is late by a sixteenth at most.
class Patience {
 public:
  void Pause() {
    using namespace std::chrono_literals;
    const std::chrono::nanoseconds waited = After(0) - start_;
    if (waited < 20us) return;
    if (waited < 1ms) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / 16, 1ms));
    }
  }
  void Restart() { start_ = After(0); }

 private:
  Deadline start_ = After(0);
};

}  // namespace trireme
