#pragma once
#include <atomic>
#include <mutex>
#include <thread>

namespace trireme {

// MPI's calls are made one at a time, from any thread: by whoever has the turn.
class MpiTurns {
 private:
  friend class MpiTurn;
  std::mutex mutex_;
  std::atomic<int> wanting_ = 0;  // threads that have something new for MPI: pollers step aside
};

// The right to call MPI. Who has something new goes first: a poller that takes the turn again and
// again would keep it from the others.
class MpiTurn {
 public:
  enum Who { kPoller, kCaller };
  MpiTurn(MpiTurns& turns, Who who) : lock_(turns.mutex_, std::defer_lock) {
    if (who == kCaller) {
      ++turns.wanting_;
      lock_.lock();
      --turns.wanting_;
    } else {
      while (turns.wanting_ > 0) std::this_thread::yield();
      lock_.lock();
    }
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace trireme
