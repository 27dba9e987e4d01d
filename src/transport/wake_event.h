#pragma once
#include <condition_variable>
#include <mutex>

#include "transport/deadline.h"

namespace trireme {

// Wakes a thread that serves several links. Thread-safe.
class WakeEvent {
 public:
  void Notify() {
    {
      std::lock_guard lock(mutex_);
      notified_ = true;
    }
    changed_.notify_one();
  }
  void Wait(Deadline deadline) {  // until notified since the last wait
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return notified_; });
    notified_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool notified_ = false;  // guarded by mutex_
};

}  // namespace trireme
