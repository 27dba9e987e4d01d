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
  // `nap`: sleeps at least so long, and never merely lets others run. On a busy core a thread that
  // sleeps is back when its time is over, one that yields when all others have had their turn.
  explicit Patience(std::chrono::nanoseconds nap = std::chrono::nanoseconds::zero()) : nap_(nap) {}

  void Pause() {
    using namespace std::chrono_literals;
    const std::chrono::nanoseconds waited = After(0) - start_;
    if (waited < 20us) return;
    if (waited < 1ms && nap_ == 0ns) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(waited / 16, nap_, 1ms));
    }
  }
  void Restart() { start_ = After(0); }

 private:
  const std::chrono::nanoseconds nap_;
  Deadline start_ = After(0);
};

}  // namespace trireme
