#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/function_ref.h"
#include "base/start_thread.h"

namespace trireme {

// Asks for a signal now and then where no supervisor of processes does: who is asked may have
// something to say about it, and ranks that compute cannot ask in the middle of a step.
class SignalPoller {
 public:
  explicit SignalPoller(FunctionRef<int()> signal) {
    if (!signal) return;
    thread_ =
        StartThread("the thread that looks for signals", [this, signal](std::stop_token stop) {
          std::unique_lock lock(mutex_);
          while (!stop.stop_requested() && signal() == 0) {
            changed_.wait_for(lock, stop, std::chrono::milliseconds(20), [] { return false; });
          }
          signal();  // one that came since, and ended all this
        });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;  // last: ends before the rest goes
};

}  // namespace trireme
